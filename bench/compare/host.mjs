// Drives an agent through a vendor's SDK, as package drive does through package sdk, and prints
// the same line of figures:
//
//   node --expose-gc host.mjs claude|qoder AGENT turn MODE N SESSIONS
//   node --expose-gc host.mjs claude|qoder AGENT batch MILLISECONDS TASKS AT-ONCE
//   node --expose-gc host.mjs claude|qoder AGENT fault NAME
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';

const [vendor, agent, what, ...args] = process.argv.slice(2);
const sdk = await import(vendor === 'claude' ? '@anthropic-ai/claude-agent-sdk' : '@qoder-ai/qoder-agent-sdk');
const { query, tool, createSdkMcpServer } = sdk;
const limit = 3000; // milliseconds that a call may take before it is said to hang

const options = (more) => ({
  ...(vendor === 'claude' ? { pathToClaudeCodeExecutable: agent } : { pathToQoderCLIExecutable: agent, auth: sdk.accessToken('none') }),
  env: { ...process.env, BENCH_ROLE: 'agent' },
  ...more,
});
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const rss = () => { gc(); gc(); return process.memoryUsage().rss / 2 ** 20; };
const peak = () => Number(/VmHWM:\s*(\d+)/.exec(existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : '')?.[1] ?? 0) / 1024;
const cpu = () => { const u = process.cpuUsage(); return (u.user + u.system) / 1000; };
const print = (line) => console.log(JSON.stringify(line));
const user = (content) => ({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null, session_id: '' });

const modes = {
  stream: () => ({ includePartialMessages: true }),
  hook: () => ({ hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [async () => ({})] }] } }),
  perm: () => ({ canUseTool: async (_, input) => ({ behavior: 'allow', updatedInput: input }) }),
  mcp: () => ({
    mcpServers: { bench: createSdkMcpServer({ name: 'bench', version: '1.0.0', tools: [
      tool('echo', 'returns its text', { text: z.string() }, async ({ text }) => ({ content: [{ type: 'text', text }] })),
    ] }) },
  }),
  work: () => ({}),
  idle: () => ({}),
};

// A session that stays open until close is called.
class Session {
  constructor(mode, n) {
    this.mode = mode;
    this.prompt = `${mode} ${n}`;
    this.started = new Promise((go) => { this.go = go; });
    this.closing = new Promise((end) => { this.end = end; });
    const self = this;
    this.query = query({
      prompt: (async function* () { await self.started; yield user(self.prompt); await self.closing; })(),
      options: options(modes[mode]()),
    });
  }
  open() { return this.query.initializationResult(); }
  async turn() {
    this.go();
    let messages = 0, text = 0;
    for (;;) {
      const { value: m, done } = await this.query.next();
      if (done) throw new Error('the session has ended without a result');
      messages++;
      if (m.type === 'stream_event') text += m.event.delta?.text?.length ?? 0;
      if (m.type !== 'result') continue;
      if (m.is_error) throw new Error(`the turn failed: ${JSON.stringify(m)}`);
      if (this.mode === 'stream' && text === 0) throw new Error('the agent streamed no text');
      return { messages, ns: Number(/(\d+) ns\b/.exec(m.result)?.[1] ?? 0) };
    }
  }
  async close() {
    this.end();
    while (!(await this.query.next()).done);
  }
}

// Calls fn for 0 to n-1, at most so many at the same time.
async function each(n, atOnce, fn) {
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(n, atOnce) }, async () => { while (next < n) await fn(next++); }));
}

async function turns(mode, n, count) {
  if (mode === 'idle') { // what all sessions share does not count
    const first = new Session(mode, n);
    await first.open();
    await first.turn();
    await first.close();
  }
  const base = rss(), sessions = Array.from({ length: count });
  let from = performance.now(), used = cpu(), messages = 0, ns = 0;
  const add = (t) => { messages += t.messages; ns += t.ns; };
  await each(count, 8, async (i) => {
    sessions[i] = new Session(mode, n);
    await sessions[i].open();
    if (mode === 'idle') add(await sessions[i].turn());
  });
  if (mode !== 'idle') {
    from = performance.now();
    used = cpu();
    await each(count, count, async (i) => add(await sessions[i].turn()));
  }
  const line = {
    mode, n, sessions: count, messages, cli_ns: Math.round(ns / count), wall_ms: performance.now() - from, cpu_ms: cpu() - used,
    peak_mb: peak(), base_mb: base, rss_mb: rss(),
  };
  await each(count, 8, (i) => sessions[i].close());
  print(line);
}

async function batch(ms, tasks, atOnce) {
  const from = performance.now(), used = cpu();
  let results = 0;
  await each(tasks, atOnce, async () => {
    for await (const m of query({ prompt: `work ${ms}`, options: options({}) })) if (m.type === 'result' && !m.is_error) results++;
  });
  if (results !== tasks) throw new Error(`${tasks} tasks have ${results} results`);
  print({ mode: 'batch', n: ms, sessions: tasks, wall_ms: performance.now() - from, cpu_ms: cpu() - used });
}

// What a caller sees of an agent that misbehaves.
async function fault(name) {
  const saw = { ended: 'end', calls: 0 };
  const o = options({ includePartialMessages: true });
  switch (name) {
    case 'twice': o.hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [async () => { saw.calls++; return {}; }] }] }; break;
    case 'hooked': o.hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [async () => { throw new Error('the callback failed'); }] }] }; break;
    case 'asks': o.canUseTool = () => new Promise(() => {}); break;
    case 'env': o.env = { BENCH_ROLE: 'agent', BENCH_FAULT: process.env.BENCH_FAULT, BENCH_REPORT: process.env.BENCH_REPORT }; break;
    case 'args': o.mcpServers = { remote: { type: 'http', url: 'http://127.0.0.1:9/', headers: { Authorization: process.env.BENCH_SECRET } } }; break;
  }
  const from = performance.now();
  let end;
  const over = new Promise((done) => { end = done; });
  const run = async () => {
    try {
      const prompt = (async function* () { yield user('go'); await over; })();
      for await (const m of query({ prompt, options: o })) {
        if (name === 'streams' && m.type === 'stream_event') { saw.ended = 'left'; break; }
        if (m.type === 'result') { saw.ended = 'result'; end(); }
      }
    } catch (e) {
      saw.ended = 'error';
      saw.error = String(e?.message ?? e);
    }
  };
  await Promise.race([run(), sleep(name === 'asks' ? 3 * limit : limit).then(() => { if (name !== 'streams') saw.ended = 'hangs'; })]);
  if (name === 'streams') for (let i = 0; i < 60 && !/SIGTERM|interrupt/.test(existsSync(process.env.BENCH_REPORT) ? readFileSync(process.env.BENCH_REPORT, 'utf8') : ''); i++) await sleep(50);
  saw.wall_ms = performance.now() - from;
  saw.at = Date.now() * 1e6;
  print(saw);
  process.exit(0);
}

switch (what) {
  case 'turn': await turns(args[0], Number(args[1]), Number(args[2])); break;
  case 'batch': await batch(Number(args[0]), Number(args[1]), Number(args[2])); break;
  case 'fault': await fault(args[0]); break;
  default: throw new Error(`unknown: ${what}`);
}
