package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type fillBase struct {
	ID   string `json:"id"`
	Name string `json:"name"` // hidden
}

type FillBehind struct {
	Behind string `json:"behind"`
}

type fillMode string

type filled struct {
	fillBase
	*FillBehind
	Name   string          `json:"name"`
	Mode   fillMode        `json:"mode"`
	Raw    json.RawMessage `json:"raw"`
	Number json.Number     `json:"number"`
	Quoted string          `json:"quoted,string"`
	Day    time.Time       `json:"day"`
	Base   HookBase        `json:"base"`
	List   []fillBase      `json:"list"`
	Count  int             `json:"count"`
	Deep   *fillBase       `json:"deep"`
}

// TestWhatIsFilledIsThatOfJSON: what is decoded member by member is what encoding/json
// decodes, and whatever was in the struct before is treated alike.
func TestWhatIsFilledIsThatOfJSON(t *testing.T) {
	t.Parallel()
	keys := []string{
		"id", "name", "mode", "raw", "number", "quoted", "day", "base", "list", "count", "deep", "behind",
		"Name", "NAME", "n\\u0061me", "else", "hook_event_name", "tool_input", "tool_name", "effort", "",
	}
	values := []string{
		`"a"`, `"a"`, `""`, `"\u00e9 \ud83d\ude00 \ud800 \" \\ \n"`, "\"\xff\"", `"1"`, `"\"q\""`, `"2020-01-01T00:00:00Z"`,
		`null`, `1`, `-0`, `true`, `{}`, `[]`, `[ {"id":"x","ID":"y"} ]`, `{"id":"x","Name":"y","name":"z","name":"w"}`,
	}
	invalid := []string{"\"\x01\"", `"\x"`, `01`, `tru`, ``}
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
		doc := space.Draw(t, "before") + "{"
		for i := range rapid.OneOf(rapid.IntRange(0, 4), rapid.IntRange(0, maxMembers+2)).Draw(t, "members") {
			if i > 0 {
				doc += ","
			}
			from := values
			if rapid.IntRange(0, 15).Draw(t, "valid") == 15 {
				from = invalid
			}
			doc += space.Draw(t, "space") + `"` + rapid.SampledFrom(keys).Draw(t, "key") + `"` + space.Draw(t, "space") + ":" + space.Draw(t, "space") +
				rapid.SampledFrom(from).Draw(t, "value")
		}
		doc += rapid.SampledFrom([]string{"}", "}", "}", "} ", "}}", ",}", ""}).Draw(t, "end")
		old := rapid.Bool().Draw(t, "used before")
		for _, fresh := range []func() any{
			func() any { return new(PreToolUseInput) },
			func() any { return new(CanUseToolRequest) },
			func() any {
				v := new(filled)
				if old {
					v.Name, v.Raw, v.Deep, v.FillBehind = "before", json.RawMessage("before"), &fillBase{ID: "before"}, &FillBehind{}
				}
				return v
			},
		} {
			got, want := fresh(), fresh()
			err := Unmarshal([]byte(doc), got)
			wantErr := json.Unmarshal(exact([]byte(doc), shapeOf(reflect.TypeOf(want))), want)
			require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err), doc)
			require.Equal(t, want, got, doc)
		}
	})
}

func TestWhatIsFilledInOnePass(t *testing.T) {
	t.Parallel()
	for doc, fills := range map[string]bool{
		`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"new":[1]}`: true,
		`{"tool_name":null,"tool_input":null}`:                                                        true,
		`{"effort":{"level":"high"}}`:                                                                 true,
		`{"effort":{"level":5}}`:                                                                      false,
		`{"effort":null,"mcp_server":null}`:                                                           false, // two of them
		`{"tool_name":"a","tool_name":"b"}`:                                                           false,
		`{"tool_name":5}`:                                                                             false,
		`{"tool_name":"a"`:                                                                            false,
		`[]`:                                                                                          false,
	} {
		in := new(PreToolUseInput)
		assert.Equal(t, fills, shapeOf(reflect.TypeOf(in)).decode([]byte(doc), in), doc)
	}
	var none *PreToolUseInput
	assert.False(t, shapeOf(reflect.TypeOf(none)).decode([]byte("{}"), none))
	var nothing any
	assert.False(t, shapeOf(reflect.TypeOf(nothing)).decode([]byte("{}"), nothing))
}
