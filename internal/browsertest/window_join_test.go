package browsertest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMessagesThatAreFetchedJoinTheStream: a page shows each message once and in its order, whether it was
// fetched, came as a frame, or both. Of a step, each message is seq:uuid:text; what a merge says is the result
// of its step.
func TestMessagesThatAreFetchedJoinTheStream(t *testing.T) {
	t.Parallel()
	type step struct {
		Do   string   `json:"do"` // show, merge, add, delta, back, fill
		List []string `json:"list,omitempty"`
		Are  []string `json:"are"` // shown after it
		Says bool     `json:"says"`
		N    int      `json:"n,omitempty"`
	}
	p := window(t, browser(t), serve(t, 4, 4), "#/overview", ".tile")
	is := func(list ...string) []string { return list }
	for name, steps := range map[string][]step{
		"a frame that was fetched, too": {
			{Do: "show", List: is("1:a:A", "2:b:B"), Are: is("A", "B")},
			{Do: "add", List: is("2:b:B"), Are: is("A", "B")},
			{Do: "add", List: is("3:c:C"), Are: is("A", "B", "C")},
		},
		"the end is missing": {
			{Do: "show", List: is("1:a:A"), Are: is("A")},
			{Do: "merge", List: is("1:a:A", "2:b:B", "3:c:C"), Are: is("A", "B", "C"), Says: true},
			{Do: "add", List: is("3:c:C"), Are: is("A", "B", "C")},
		},
		"nothing is missing": {
			{Do: "show", List: is("1:a:A", "2:b:B"), Are: is("A", "B")},
			{Do: "merge", List: is("1:a:A", "2:b:B"), Are: is("A", "B"), Says: true},
		},
		"one is missing before a frame": {
			{Do: "show", List: is("1:a:A"), Are: is("A")},
			{Do: "add", List: is("3:c:C"), Are: is("A", "C")},
			{Do: "merge", List: is("1:a:A", "2:b:B", "3:c:C"), Are: is("A", "C")},
		},
		"a frame is newer than what is fetched": {
			{Do: "show", List: is("1:a:A"), Are: is("A")},
			{Do: "add", List: is("2:b:B"), Are: is("A", "B")},
			{Do: "merge", List: is("1:a:A"), Are: is("A", "B"), Says: true},
		},
		"nothing in common": {
			{Do: "show", List: is("1:a:A"), Are: is("A")},
			{Do: "merge", List: is("8:h:H", "9:i:I"), Are: is("A")},
		},
		"one that is not the next": {
			{Do: "show", List: is("1:a:A"), Are: is("A")},
			{Do: "merge", List: is("9:i:I"), Are: is("A")},
		},
		"fetched ones from before the first": {
			{Do: "show", List: is("5:e:E", "6:f:F"), Are: is("E", "F")},
			{Do: "merge", List: is("3:c:C", "4:d:D", "5:e:E", "6:f:F", "7:g:G"), Are: is("E", "F", "G"), Says: true},
		},
		"stored messages have other numbers": {
			{Do: "show", List: is("101:a:A", "102:b:B"), Are: is("A", "B")},
			{Do: "merge", List: is("7:b:B", "8:c:C"), Are: is("A", "B", "C"), Says: true},
		},
		"messages without an id": {
			{Do: "show", List: is("1:a:A", "2::B"), Are: is("A", "B")},
			{Do: "merge", List: is("1:a:A", "2::B", "3::C"), Are: is("A", "B", "C"), Says: true},
			{Do: "merge", List: is("1:a:A", "2::B", "3::C"), Are: is("A", "B", "C"), Says: true},
		},
		"what streams ends with its message": {
			{Do: "show", List: is("1:a:A"), Are: is("A")},
			{Do: "delta", List: is("2::wri"), Are: is("A", "wri")},
			{Do: "delta", List: is("2::tes"), Are: is("A", "writes")},
			{Do: "merge", List: is("1:a:A", "2:b:B"), Are: is("A", "B"), Says: true},
		},
		"a message streams whose whole was fetched": {
			{Do: "show", List: is("1:a:A", "2:b:B"), Are: is("A", "B")},
			{Do: "delta", List: is("2::B"), Are: is("A", "B", "B")},
			{Do: "add", List: is("2:b:B"), Are: is("A", "B")},
		},
		"rows that have left the page are fetched again": {
			{Do: "show", List: is("1:a:A", "2:b:B"), Are: is("A", "B")},
			{Do: "fill", N: 1500, Are: is("…")},
			{Do: "back", List: is("1:a:A", "2:b:B"), Are: is("A", "B", "…"), Says: true},
		},
		"earlier ones that are shown": {
			{Do: "show", List: is("5:e:E"), Are: is("E")},
			{Do: "back", List: is("3:c:C", "4:d:D", "4:e:E"), Are: is("C", "D", "E"), Says: true},
		},
		"a program that says the same again": {
			{Do: "show", List: is("5:e:E"), Are: is("E")},
			{Do: "back", List: is("5:e:E"), Are: is("E")},
			{Do: "back", List: is("5::E"), Are: is("E")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(steps)
			require.NoError(t, err)
			got := eval[[]step](t, p, fmt.Sprintf(`(async steps => {
				const { Transcript } = await import("./transcript.js");
				let page = [];
				const tx = new Transcript("t", { earlier: async () => ({ messages: page, more: false }) });
				document.querySelector("main").append(tx.el);
				const of = m => { const [seq, uuid, text] = m.split(":"); return { seq: +seq, uuid: uuid || undefined, type: "assistant", at: "2026-01-01T00:00:00Z", message: { role: "assistant", content: text } }; };
				for (const s of steps) {
					const list = (s.list || []).map(of);
					let says = false;
					if (s.do === "show") tx.show(list, true);
					if (s.do === "merge") says = tx.merge(list);
					if (s.do === "add") list.forEach(m => tx.add(m));
					if (s.do === "delta") for (const m of list) tx.delta(m.seq, m.message.content);
					if (s.do === "fill") for (let i = 0; i < s.n; i++) tx.add(of(100 + i + ":f" + i + ":…"));
					if (s.do === "back") { page = list; says = await tx.back(); }
					s.says = says;
					s.are = [...tx.box.children].map(e => e.querySelector(".prose").textContent);
					if (s.are.filter(x => x === "…").length === 1500) s.are = [...s.are.filter(x => x !== "…"), "…"];
				}
				return steps;
			})(%s)`, raw))
			assert.Equal(t, steps, got)
		})
	}
}
