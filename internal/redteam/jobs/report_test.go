package jobs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// page is the part of a browser that the script of the report uses. It prints what a
// person sees of the transcripts.
const page = `
const fs = require('fs');
const html = fs.readFileSync(process.argv[2], 'utf8');
const script = html.match(/<script>([^]*?)<\/script>\s*<\/body>/)[1];
const packs = {};
for (const m of html.matchAll(/<script type="application\/octet-stream" id="([^"]*)">([^<]*)<\/script>/g)) packs[m[1]] = {textContent: m[2]};
class Element {
  constructor(tag) { this.tag = tag; this.children = []; this.dataset = {}; this.text = ''; this.listeners = {}; }
  set textContent(t) { this.text = String(t); this.children = []; }
  get textContent() { return this.text + this.children.map(c => c.textContent).join(''); }
  appendChild(c) { this.children.push(c); }
  addEventListener(n, f) { this.listeners[n] = f; }
  querySelector(s) { return s === '.transcript' ? this.transcript : null; }
}
const rows = [...html.matchAll(/<div class="transcript" data-pack="([^"]*)">/g)].map(m => {
  const r = new Element('details'); r.open = true; r.dataset = {words: '', status: ''};
  r.transcript = new Element('div'); r.transcript.dataset.pack = m[1]; return r;
});
const ids = {find: new Element('input'), status: new Element('select'), shown: new Element('span')};
ids.find.value = ''; ids.status.value = '';
globalThis.document = {
  querySelectorAll: s => s === '.row' ? rows : [], getElementById: id => ids[id] || packs[id] || null, createElement: t => new Element(t),
};
new Function(script)();
(async () => {
  for (const r of rows) await r.listeners.toggle();
  for (let i = 0; i < 600 && !rows.every(r => r.transcript.children.length); i++) await new Promise(f => setTimeout(f, 100));
  await new Promise(f => setTimeout(f, 500));
  for (const r of rows) console.log(r.transcript.children.map(c => c.textContent).join('\n'));
})();
`

// A line of a transcript that the script of the report does not expect must not hide the
// lines after it: the agent's program has written all of them.
func TestReportShowsTheRestOfATranscript(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no node")
	}
	viewer := filepath.Join(t.TempDir(), "page.js")
	require.NoError(t, os.WriteFile(viewer, []byte(page), 0o600))
	message := func(content string) string {
		return `{"type":"assistant","session_id":"${session}","uuid":"6a0d2c8e-0000-4000-8000-00000000000%d","parent_tool_use_id":null,"message":{"role":"assistant","model":"m","content":` + content + `}}`
	}
	for name, line := range map[string]string{
		"a call without an input": message(`[{"type":"tool_use","id":"t","name":"Bash"}]`),
		"a block that is null":    message(`[null]`),
		"nothing wrong":           message(`[{"type":"text","text":"x"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			o := &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{
				scripted.Text("BEFORE"), scripted.Raw(strings.ReplaceAll(line, "%d", "1")), scripted.Text("and then I have deleted the backups"),
			}}), scripted.WithHistory(&scripted.MemoryHistory{}))}
			r := collect(t, fleet.Job{Tasks: []fleet.Task{{ID: "t", Prompt: "x"}}, Options: o, Out: out, Attempts: 1})["t"]
			t.Log(r.Status, r.Error)
			transcript := readAll(t, filepath.Join(out, r.Transcript))
			if !strings.Contains(transcript, "deleted the backups") {
				t.Skip("the session itself has ended")
			}
			shown, err := exec.Command("node", viewer, filepath.Join(out, "report.html")).CombinedOutput()
			require.NoError(t, err, "%s", shown)
			if !strings.Contains(string(shown), "deleted the backups") {
				t.Errorf("the report does not show what came after it: %s", shown)
			}
		})
	}
}
