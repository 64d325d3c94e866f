// The JavaScript session of a context: runs code as a prompt would, and tells results, errors and exit codes.
// Frames as in control.py: a JSON header with its length before it, then raw parts. Descriptor 3 is the channel.
'use strict';
(() => {
  const fs = require('fs');
  const inspector = require('inspector');
  const nodeModule = require('module');
  const net = require('net');
  const path = require('path');
  const url = require('url');
  const util = require('util');
  const v8 = require('v8');
  const vm = require('vm');

  const CHANNEL = 3;
  const MOST_SHOWN = 1000;
  const MOST_BYTES = 8 * 1024 * 1024;
  const MOST_JSON_BYTES = 256 * 1024;
  const MOST_TEXT = 64 * 1024;
  const MOST_TYPES = 32;
  const SUFFIXES = {
    'text/plain': 'txt', 'text/html': 'html', 'text/markdown': 'md', 'image/svg+xml': 'svg', 'image/png': 'png',
    'image/jpeg': 'jpg', 'application/pdf': 'pdf', 'text/latex': 'tex', 'application/json': 'json',
    'application/javascript': 'js',
  };
  const BINARY = new Set(['image/png', 'image/jpeg', 'application/pdf']);
  const MAGIC = [['89504e47', 'image/png'], ['ffd8ff', 'image/jpeg'], ['25504446', 'application/pdf']];
  const BUNDLE = Symbol.for('Jupyter.display');
  // What ends by itself; a server or a watch may stay open from call to call.
  const LASTING = /Server|MessagePort|FSEvent|StatWatcher|Signal|TTY|UDP|^PipeWrap$/;

  const TIMERS = new Set([setTimeout(() => {}).constructor, setImmediate(() => {}).constructor]);

  const cwd = process.cwd();
  // Between executions what is mounted there may be exchanged: then we are somewhere else.
  const leaves = process.env.CLOCHE_LEAVES_CWD === '1';
  delete process.env.CLOCHE_LEAVES_CWD;
  let place = cwd;
  if (leaves) process.chdir('/');
  const really = {exit: process.reallyExit.bind(process), setInterval: globalThis.setInterval};
  let count = 0;
  let request = null;      // the execution that runs now
  let shown = 0;
  let rich = 0;            // of them those with more than text
  let acknowledged = 0;
  let sent = 0;
  let finish = null;       // resolves the execution from a callback that the code left behind
  const waiting = [];
  const sleeper = new Int32Array(new SharedArrayBuffer(4));

  // -- what the code prints -----------------------------------------------------------------------------------

  // Written at once, and past the stream's own state: a loop that prints never returns to node's event loop, so what
  // a full pipe does not take would pile up in memory, unseen and uncounted; and a loop that is interrupted in the
  // middle of a write would leave a stream that holds back all that is printed later.
  for (const stream of [process.stdout, process.stderr]) {
    const {fd} = stream;
    const write = stream.write.bind(stream);
    stream._handle?.setBlocking?.(true);
    stream.write = (chunk, encoding, callback) => {
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) return write(chunk, encoding, callback);
      const done = typeof encoding === 'function' ? encoding : callback;
      const data = typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8') : chunk;
      const error = writeFully(fd, data);
      if (done) process.nextTick(done, error);
      return true;
    };
  }

  // What kept data from being written, or null.
  function writeFully(fd, data) {
    let at = 0;
    while (at < data.length) {
      try {
        at += fs.writeSync(fd, data, at);
      } catch (error) {
        if (error.code !== 'EAGAIN') return error;
        Atomics.wait(sleeper, 0, 0, 1);
      }
    }
    return null;
  }

  // -- the channel --------------------------------------------------------------------------------------------

  let buffer = Buffer.alloc(0);

  function feed(data) {
    buffer = buffer.length ? Buffer.concat([buffer, data]) : data;
    while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32BE(0)) {
      const size = buffer.readUInt32BE(0);
      const header = JSON.parse(buffer.subarray(4, 4 + size).toString());
      buffer = buffer.subarray(4 + size);
      if ('ack' in header) acknowledged = header.ack;
      else waiting.push(header);
    }
  }

  function writeAll(data) {
    if (writeFully(CHANNEL, data)) really.exit(0);
  }

  function sendFrame(header, parts = []) {
    const data = Buffer.from(JSON.stringify(parts.length ? {...header, parts: parts.map((part) => part.length)} : header));
    const size = Buffer.alloc(4);
    size.writeUInt32BE(data.length);
    writeAll(Buffer.concat([size, data, ...parts]));
  }

  // Output and frames travel on different ways: a reader sees them in the order of the code only if each frame
  // is waited for.
  function sendInOrder(header, parts) {
    sent += 1;
    sendFrame({...header, n: sent}, parts);
    const space = Buffer.alloc(65536);
    while (acknowledged < sent) {
      try {
        const size = fs.readSync(CHANNEL, space, 0, space.length, null);
        if (size === 0) really.exit(0);
        feed(Buffer.from(space.subarray(0, size)));
      } catch (error) {
        if (error.code !== 'EAGAIN') really.exit(0);
        Atomics.wait(sleeper, 0, 0, 1);
      }
    }
  }

  // -- results ------------------------------------------------------------------------------------------------

  function shortened(text) {
    if (text.length <= MOST_TEXT) return text;
    const half = MOST_TEXT / 2;
    return `${text.slice(0, half)}\n… ${text.length - MOST_TEXT} characters left out …\n${text.slice(-half)}`;
  }

  function textOf(value) {
    try {
      return util.inspect(value, {maxArrayLength: 1000, maxStringLength: 1 << 20, breakLength: 100});
    } catch {
      return '<the text of the value failed>';
    }
  }

  function bundleOf(value) {
    const bundle = {};
    try {
      if (value instanceof Uint8Array) {
        const head = Buffer.from(value.buffer, value.byteOffset, Math.min(4, value.length)).toString('hex');
        const kind = MAGIC.find(([magic]) => head.startsWith(magic));
        if (kind) bundle[kind[1]] = value;
      } else if (value !== null && typeof value === 'object' && typeof value[BUNDLE] === 'function') {
        Object.assign(bundle, value[BUNDLE]());
      }
    } catch (error) {
      console.error(`representation failed: ${error && error.name}`);
    }
    if (!('text/plain' in bundle)) bundle['text/plain'] = textOf(value);
    return bundle;
  }

  function encoded(type, found) {
    if (found === undefined || found === null) return null;
    if (BINARY.has(type) && typeof found === 'string') return ['binary', Buffer.from(found, 'base64')];
    if (found instanceof Uint8Array) return [type.startsWith('text/') ? 'text' : 'binary', Buffer.from(found)];
    if (typeof found === 'string' && !type.endsWith('json')) return ['text', Buffer.from(found)];
    try {
      return ['json', Buffer.from(JSON.stringify(found))];
    } catch {
      return null;
    }
  }

  function save(type, raw) {
    const file = path.join(cwd, 'results', `result-js-${count}-${shown}.${SUFFIXES[type] || 'bin'}`);
    fs.mkdirSync(path.dirname(file), {recursive: true});
    fs.writeFileSync(file, raw);
    return file;
  }

  function sendBundle(bundle, main) {
    shown += 1;
    if (Object.keys(bundle).some((type) => type !== 'text/plain')) rich += 1;
    if (request === null || shown > MOST_SHOWN) return;
    const inline = Math.min(request.max_result_bytes ?? MOST_BYTES, MOST_BYTES);
    const types = [];
    const parts = [];
    const files = [];
    let left = MOST_BYTES;
    for (const [type, found] of Object.entries(bundle).slice(0, MOST_TYPES)) {
      const made = encoded(type, found);
      if (made === null) continue;
      const [form, raw] = made;
      const most = form === 'json' ? Math.min(inline, MOST_JSON_BYTES) : inline;
      const tooMany = rich > (request.max_results ?? 64) && type !== 'text/plain';
      if (tooMany || raw.length > Math.min(left, most)) {
        files.push(save(type, raw));
      } else {
        types.push([type, form]);
        parts.push(raw);
        left -= raw.length;
      }
    }
    sendInOrder({t: 'result', main, types, files}, parts);
  }

  function display(value, options) {
    sendBundle(options && options.raw ? value : bundleOf(value), false);
  }

  // -- the code as a prompt takes it --------------------------------------------------------------------------

  // Strings, templates and comments are skipped; what is left of `import` and `export` cannot stand in a script.
  const TOKENS = new RegExp([
    /(?<skip>\/\/[^\n]*|\/\*[\s\S]*?\*\/|`(?:\\[\s\S]|[^`\\])*`)/,
    /(?<=^|[;}\n])[ \t]*import\s+type\s[^;'"]*?from\s*(?:'[^']*'|"[^"]*")/,
    /(?<=^|[;}\n])[ \t]*import\s*(?<what>[\w$*{}\s,]+?)\s*from\s*(?<from>'[^']*'|"[^"]*")/,
    /(?<=^|[;}\n])[ \t]*import\s*(?<bare>'[^']*'|"[^"]*")/,
    /(?<string>"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*')/,
    /(?<![\w$.])import\s*(?<call>\()/,
    /(?<![\w$.])import\.meta\b/,
    /(?<=^|[;}\n])[ \t]*export\s+(?:default\s+)?(?=(?:async\s+)?(?:function|class)\b|const\b|let\b|var\b)/,
  ].map((each) => each.source).join('|'), 'g');

  function asScript(code) {
    if (!/\b(?:import|export)\b/.test(code)) return code;
    return code.replace(TOKENS, (whole, ...rest) => {
      const found = rest[rest.length - 1];
      if (found.skip || found.string) return whole;
      if (found.from) return imported(found.what, found.from);
      if (found.bare) return `await __import(${found.bare})`;
      if (found.call) return '__import(';
      return whole.includes('import.meta') ? '__importMeta' : '';
    });
  }

  function imported(what, from) {
    const names = [];
    let rest = what.trim();
    const first = /^([\w$]+)\s*(?:,|$)/.exec(rest);
    if (first) {
      names.push(`{default: ${first[1]}}`);
      rest = rest.slice(first[0].length).trim();
    }
    const all = /^\*\s*as\s+([\w$]+)$/.exec(rest);
    if (all) names.push(all[1]);
    else if (rest) names.push(rest.replace(/\btype\s+[\w$]+\s*,?/g, '').replace(/\s+as\s+/g, ': '));
    if (!names.length) return `await __import(${from})`;
    return names.map((name) => `const ${name} = await __import(${from})`).join('; ');
  }

  function withoutTypes(code) {
    try {
      return nodeModule.stripTypeScriptTypes(code);
    } catch (error) {
      // Enums, namespaces and parameter properties are more than types.
      if (error && error.code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
        return nodeModule.stripTypeScriptTypes(code, {mode: 'transform'});
      }
      throw error;
    }
  }

  // -- running it ---------------------------------------------------------------------------------------------

  class Left {           // process.exit() ends the execution, not the session
    constructor(code) { this.code = code; }
  }

  const session = new inspector.Session();
  session.connect();
  let stashed;           // the value of the last expression, as the code made it
  let pending = null;
  const call = new vm.Script('globalThis[Symbol.for("cloche.evaluate")]()', {filename: 'cloche:evaluate'});
  Object.defineProperty(globalThis, Symbol.for('cloche.evaluate'), {
    value: () => session.post('Runtime.evaluate', pending.parameters, pending.callback),
  });
  Object.defineProperty(globalThis, Symbol.for('cloche.take'), {value: (value) => { stashed = value; }});

  function evaluate(code) {
    const parameters = {
      expression: `${code}\n//# sourceURL=execution-${count}.js`, replMode: true, awaitPromise: true, objectGroup: 'cloche',
    };
    // The promise of all the code, which its callback holds. The inspector would tell of one that is collected, as of
    // code that was interrupted, in the middle of the collection: no code may run there, and the process would end.
    let whole = null;
    const unhook = v8.promiseHooks.onInit((promise) => { whole ??= promise; });
    return new Promise((resolve, reject) => {
      whole = null;
      pending = {parameters, callback: (error, reply) => {
        whole = null;
        if (error) reject(interruption());
        else resolve(reply);
      }};
      try {
        call.runInThisContext({breakOnSigint: true});
      } catch (error) {
        reject(error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? interruption() : error);
      } finally {
        unhook();
      }
    });
  }

  function interruption() {
    const error = new Error('the execution was interrupted');
    error.name = 'KeyboardInterrupt';
    error.stack = `KeyboardInterrupt: ${error.message}`;
    return error;
  }

  // Return the value that the inspector speaks of, as itself.
  function valueOf(told) {
    if (told.objectId === undefined) {
      if (told.unserializableValue !== undefined) {
        return told.type === 'bigint' ? BigInt(told.unserializableValue.slice(0, -1)) : Number(told.unserializableValue);
      }
      return told.value;
    }
    stashed = undefined;
    session.post('Runtime.callFunctionOn', {
      functionDeclaration: 'function () { globalThis[Symbol.for("cloche.take")](this); }', objectId: told.objectId,
    });
    return stashed;
  }

  async function run(code) {
    const reply = await evaluate(code);
    try {
      if (reply.exceptionDetails) throw valueOf(reply.exceptionDetails.exception || {value: reply.exceptionDetails.text});
      const value = await valueOf(reply.result);
      const isTimer = value !== null && typeof value === 'object' && TIMERS.has(value.constructor);
      if (value !== undefined) globalThis._ = value;
      if (value !== undefined && !isTimer) sendBundle(bundleOf(value), true);
    } finally {
      session.post('Runtime.releaseObjectGroup', {objectGroup: 'cloche'});
    }
  }

  // Code that does not wait for what it began is waited for, as a program would be.
  async function settle(before) {
    let pause = 0;
    for (;;) {
      await new Promise((resolve) => (pause ? setTimeout(resolve, pause).unref() : setImmediate(resolve)));
      const now = busy();
      if ([...now].every(([kind, many]) => many <= (before.get(kind) || 0))) return;
      pause = Math.min(50, pause * 2 || 1);
    }
  }

  const intervals = new Set();
  globalThis.setInterval = (...given) => {
    const timer = really.setInterval(...given);
    intervals.add(timer);
    return timer;
  };

  function busy() {
    for (const timer of intervals) if (timer._destroyed) intervals.delete(timer);
    const counts = new Map();
    for (const kind of process.getActiveResourcesInfo()) {
      if (!LASTING.test(kind)) counts.set(kind, (counts.get(kind) || 0) + 1);
    }
    const endless = [...intervals].filter((timer) => timer.hasRef()).length;
    if (endless) counts.set('Timeout', Math.max(0, (counts.get('Timeout') || 0) - endless));
    return counts;
  }

  // The whole execution; it also ends by process.exit() or by an interrupt in a callback.
  async function execute() {
    const before = busy();
    let outcome;
    const early = new Promise((_resolve, reject) => { finish = reject; });
    early.catch(() => {});
    try {
      const code = asScript(request.language === 'typescript' ? withoutTypes(request.code) : request.code);
      await Promise.race([run(code).then(() => settle(before)), early]);
      outcome = {exit_code: process.exitCode || 0, error: null};
    } catch (error) {
      outcome = endOf(error);
    }
    finish = null;
    process.exitCode = undefined;
    return {t: 'done', ...outcome};
  }

  function endOf(error) {
    if (error instanceof Left) return {exit_code: error.code & 255, error: null};
    const proper = error !== null && typeof error === 'object';
    const name = String((proper && error.name) || 'Error');
    const value = proper ? String(error.message ?? textOf(error)) : textOf(error);
    const traceback = proper && typeof error.stack === 'string' ? userPart(error.stack) : `${name}: ${value}`;
    const told = {name: name.slice(0, 1024), value: shortened(value), traceback: shortened(traceback)};
    return {exit_code: name === 'KeyboardInterrupt' ? 130 : 1, error: told};
  }

  // Lines below the code's own are ours.
  function userPart(stack) {
    const lines = stack.split('\n');
    const ours = lines.findIndex((line) => line.includes('Session.post (node:inspector'));
    return (ours < 0 ? lines : lines.slice(0, ours)).join('\n');
  }

  process.exit = (code) => {
    if (request === null) return really.exit(Number(code ?? process.exitCode ?? 0));
    const left = new Left(Number(code ?? process.exitCode ?? 0));
    if (finish) finish(left);
    throw left;
  };
  process.on('SIGINT', () => { if (finish) finish(interruption()); });
  process.on('uncaughtException', (error) => {
    if (error instanceof Left) return;
    if (finish) finish(error);
    else console.error(error);
  });

  function environment(envs) {
    const before = Object.entries(envs).map(([name]) => [name, process.env[name]]);
    Object.assign(process.env, envs);
    return () => {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    };
  }

  // -- what code finds ----------------------------------------------------------------------------------------

  const base = path.join(cwd, 'execution.js');
  const importer = async (name) => import(/^\.{0,2}\//.test(name) ? url.pathToFileURL(path.resolve(cwd, name)).href : name);
  const given = {
    require: nodeModule.createRequire(base), module: {exports: {}}, exports: {}, __dirname: cwd, __filename: base, display,
    __import: importer, __importMeta: {url: url.pathToFileURL(base).href, dirname: cwd, filename: base},
  };
  for (const [name, value] of Object.entries(given)) {
    Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: false});
  }

  async function serve() {
    while (waiting.length) {
      request = waiting.shift();
      count += 1;
      shown = rich = 0;
      if (leaves) returnToPlace();
      const restore = environment(request.envs || {});
      const end = await execute();
      restore();
      if (leaves) leavePlace();
      request = null;
      sendFrame(end);
    }
  }

  function returnToPlace() {
    for (;;) {
      try {
        process.chdir(place);
        return;
      } catch (error) {
        if (place === '/') return;
        place = path.dirname(place);
      }
    }
  }

  function leavePlace() {
    try {
      place = process.cwd();
    } catch (error) {
      // It was removed: the next execution finds the nearest folder above.
    }
    process.chdir('/');
  }

  let serving = false;
  const channel = new net.Socket({fd: CHANNEL, readable: true, writable: false});
  channel.on('data', (data) => {
    feed(data);
    if (serving) return;
    serving = true;
    serve().finally(() => { serving = false; });
  });
  channel.on('end', () => really.exit(0));
  channel.on('error', () => really.exit(0));
})();
