// List the tools of a server and run code on it, with one of the TypeScript SDKs; print what came as JSON.
// node typescript.mjs v1|v2 NODE_MODULES legacy|auto URL [TOKEN]
// node typescript.mjs v1|v2 NODE_MODULES legacy|auto -- COMMAND...
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, modules, mode, target, ...rest] = process.argv.slice(2);
const load = (...path) => import(pathToFileURL(join(modules, "@modelcontextprotocol", ...path)).href);

async function library() {
  if (sdk === "v1") {
    const { Client } = await load("sdk", "dist", "esm", "client", "index.js");
    const { StreamableHTTPClientTransport } = await load("sdk", "dist", "esm", "client", "streamableHttp.js");
    const { StdioClientTransport } = await load("sdk", "dist", "esm", "client", "stdio.js");
    return { client: new Client({ name: "ts-v1", version: "1" }), StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await load("client", "dist", "index.mjs");
  const { StdioClientTransport } = await load("client", "dist", "stdio.mjs");
  const options = mode === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
  return { client: new Client({ name: "ts-v2", version: "1" }, options), StreamableHTTPClientTransport, StdioClientTransport };
}

const { client, StreamableHTTPClientTransport, StdioClientTransport } = await library();
const transport =
  target === "--"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(target), {
        requestInit: rest[0] ? { headers: { Authorization: `Bearer ${rest[0]}` } } : {},
      });
await client.connect(transport);
const { tools } = await client.listTools();
const ran = await client.callTool({ name: "run_code", arguments: { code: "print(6 * 7)" } });
const failed = await client.callTool({ name: "read_file", arguments: { path: "/no/such/file" } });
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    stdout: ran.structuredContent.stdout,
    error: JSON.parse(failed.content[0].text).code,
  }),
);
