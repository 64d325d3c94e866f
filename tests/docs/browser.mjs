// Look at the site in Chromium: every page, on a screen and on a phone, light and dark. Everything that is wrong is
// printed as a line of JSON; pictures of some pages lie in a folder.
//
//   node browser.mjs MODULES CHROMIUM ADDRESS FOLDER PAGE... < /dev/null

import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, executablePath, address, folder, ...pages] = process.argv.slice(2);
const { chromium } = createRequire(join(modules, "here.js"))("playwright-core");

const LOOKS = {
  light: { viewport: { width: 1440, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1440, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light", isMobile: true, hasTouch: true },
};
// One of each kind: the first page, one to learn from, long tables, programs, what is generated, a decision.
const PICTURED = [
  "index", "tutorial/first-steps", "how-to/serve-over-http", "how-to/use-the-python-sdk", "explanation/isolation",
  "explanation/speed", "reference/index", "reference/errors", "reference/settings", "reference/tools/sandbox/run_code",
  "adr/0003-packages-meet-through-protocols",
];

const tell = (look, page, problem) => console.log(JSON.stringify({ look, page, problem }));

async function open(browser, look) {
  const context = await browser.newContext(LOOKS[look]);
  const tab = await context.newPage();
  tab.current = "";
  tab.on("console", (said) => ["error", "warning"].includes(said.type()) && tell(look, tab.current, said.text()));
  tab.on("pageerror", (error) => tell(look, tab.current, String(error)));
  tab.on("response", (answer) => answer.status() >= 400 && tell(look, tab.current, `${answer.status()} ${answer.url()}`));
  tab.on("request", (asked) => asked.url().startsWith(address) || tell(look, tab.current, `asks ${asked.url()}`));
  return tab;
}

async function visit(tab, look, page) {
  tab.current = page;
  await tab.goto(`${address}/${page}.html`);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) tell(look, page, `is ${wide} pixels wider than the screen`);
  const words = await tab.locator("article").innerText();
  if (words.split(/\s+/).length < 20) tell(look, page, "is empty");
  if (!PICTURED.includes(page)) return;
  await tab.screenshot({ path: join(folder, `${page.replaceAll("/", "-")}.${look}.png`), fullPage: false });
}

async function search(tab, look, words) {
  tab.current = `search for ${words}`;
  await tab.goto(`${address}/index.html`);
  await tab.locator("input.sidebar-search").first().fill(words);
  await tab.keyboard.press("Enter");
  await tab.waitForURL("**/search.html?*");
  await tab.waitForFunction(() => /found|did not match/.test(document.querySelector("#search-results p")?.innerText ?? ""));
  return tab.locator("#search-results ul.search > li").count();
}

async function follow(tab, look) {
  tab.current = "a link to a part of a page";
  await tab.goto(`${address}/explanation/isolation.html`);
  await tab.locator(".toc-tree a", { hasText: "Refusal" }).click();
  if (!tab.url().endsWith("#refusal")) tell(look, tab.current, `leads to ${tab.url()}`);
  await tab.waitForFunction(() => {
    const { top, bottom } = document.querySelector("#refusal h2").getBoundingClientRect();
    return top >= 0 && bottom <= window.innerHeight;
  });
}

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});
try {
  for (const look of Object.keys(LOOKS)) {
    const tab = await open(browser, look);
    for (const page of look === "dark" ? PICTURED : pages) await visit(tab, look, page);
    if (look === "light") {
      for (const words of ["timeout", "backend_unavailable", "allowlist"]) {
        if ((await search(tab, look, words)) === 0) tell(look, tab.current, "finds nothing");
      }
      if ((await search(tab, look, "xyzzyplugh")) !== 0) tell(look, tab.current, "finds something");
      await follow(tab, look);
    }
    await tab.context().close();
  }
} finally {
  await browser.close();
}
