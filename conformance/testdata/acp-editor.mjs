// A client of the Agent Client Protocol on the official package: it runs an agent, and
// prints one line of JSON for each update, permission request and result.
//
//   node acp-editor.mjs CWD PROMPT... -- COMMAND ARG...
//
// ACP_SDK is the path of the package. A prompt that begins with "cancel:" is cancelled at
// its first tool that runs; one that begins with "deny:" gets no permission.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const acp = await import(pathToFileURL(process.env.ACP_SDK).href);
const args = process.argv.slice(2);
const cut = args.indexOf("--");
const [cwd, ...prompts] = args.slice(0, cut);
const [command, ...rest] = args.slice(cut + 1);
const agent = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
const print = (kind, value) => process.stdout.write(JSON.stringify({ kind, ...value }) + "\n");

let now = "";
let started = () => {};
const { agent: to, client: at } = acp.methods;
await acp
  .client({ name: "conformance" })
  .onRequest(at.session.requestPermission, ({ params }) => {
    print("permission", { options: params.options.map((o) => o.kind), tool: params.toolCall.toolCallId });
    const kind = now.startsWith("deny:") ? "reject_once" : "allow_once";
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === kind).optionId } };
  })
  .onNotification(at.session.update, ({ params }) => {
    print("update", { update: params.update });
    if (params.update.status === "in_progress") started();
  })
  .connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (ctx) => {
    print("initialized", { result: await ctx.request(to.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} }) });
    const session = await ctx.request(to.session.new, { cwd, mcpServers: [] });
    print("session", { result: session });
    const sessionId = session.sessionId;
    for (now of prompts) {
      if (now.startsWith("cancel:")) started = () => ctx.notify(to.session.cancel, { sessionId });
      try {
        const result = await ctx.request(to.session.prompt, { sessionId, prompt: [{ type: "text", text: now }] });
        print("answer", { stopReason: result.stopReason });
      } catch (e) {
        print("answer", { error: e.code, message: String(e.message) });
      }
      started = () => {};
    }
    const listed = await ctx.request(to.session.list, { cwd });
    print("list", { ids: listed.sessions.map((s) => s.sessionId) });
    await ctx.request(to.session.close, { sessionId });
    print("history", {});
    print("loaded", { result: Object.keys(await ctx.request(to.session.load, { sessionId, cwd, mcpServers: [] })) });
  });
agent.stdin.end();
const code = await new Promise((done) => (agent.exitCode === null ? agent.on("exit", (c, s) => done(c ?? s)) : done(agent.exitCode)));
print("exit", { code });
