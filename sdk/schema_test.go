package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// schema is the input schema that a tool with input In is listed with.
func schema[In any](t *testing.T) string {
	t.Helper()
	return listed(t, sdk.NewTool("it", "d", func(context.Context, In) (*sdk.ToolResult, error) { return nil, nil }))
}

func listed(t *testing.T, tool sdk.Tool) string {
	t.Helper()
	_, list, err := server(t, tool).Manifest()
	require.NoError(t, err)
	var l struct {
		Tools []struct {
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(list, &l))
	return string(l.Tools[0].InputSchema)
}

type base struct {
	ID string `json:"id"`
}

type (
	color string
	level int
)

type ownJSON struct{ v any }

func (o *ownJSON) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &o.v) }

func TestSchemaOfAType(t *testing.T) {
	t.Parallel()
	object := func(properties string, required ...string) string {
		if required == nil {
			return `{"type":"object","properties":{` + properties + `},"additionalProperties":false}`
		}
		return `{"type":"object","properties":{` + properties + `},"required":["` + strings.Join(required, `","`) + `"],"additionalProperties":false}`
	}
	type search struct {
		Query  string  `json:"query" jsonschema:"what to look for"`
		Source color   `json:"source,omitempty" jsonschema:"where" enum:"docs, tickets"`
		Limit  *uint8  `json:"limit,omitempty"`
		Exact  bool    `json:",omitempty"`
		Score  float64 `json:"score,omitzero"`
		Hidden string  `json:"-"`
		secret string
	}
	_ = search{secret: ""}
	tests := map[string]struct{ got, want string }{
		"fields": {schema[search](t), object(`"query":{"type":"string","description":"what to look for"},`+
			`"source":{"type":"string","description":"where","enum":["docs","tickets"]},`+
			`"limit":{"type":["null","integer"],"minimum":0,"maximum":255},"Exact":{"type":"boolean"},"score":{"type":"number"}`, "query")},
		"pointer":  {schema[*base](t), object(`"id":{"type":"string"}`, "id")},
		"empty":    {schema[struct{}](t), object(``)},
		"embedded": {schema[struct{ base }](t), object(`"id":{"type":"string"}`, "id")},
		"nested": {schema[struct {
			B base `json:"b"`
		}](t), object(`"b":`+object(`"id":{"type":"string"}`, "id"), "b")},
		"lists": {schema[struct {
			A []string `json:"a"`
			B [2]level `json:"b" enum:"1,2"`
			C [][]bool `json:"c"`
		}](t), object(`"a":{"type":"array","items":{"type":"string"}},`+
			`"b":{"type":"array","items":{"type":"integer","enum":[1,2]},"minItems":2,"maxItems":2},`+
			`"c":{"type":"array","items":{"type":"array","items":{"type":"boolean"}}}`, "a", "b", "c")},
		"maps": {schema[map[string]int](t), `{"type":"object","additionalProperties":{"type":"integer"}}`},
		"map field": {schema[struct {
			M map[string]color `json:"m" enum:"red"`
		}](t), object(`"m":{"type":"object","additionalProperties":{"type":"string","enum":["red"]}}`, "m")},
		"optional enum": {schema[struct {
			F *float32 `json:"f,omitempty" enum:"0.5,1"`
		}](t), object(`"f":{"type":["null","number"],"enum":[0.5,1,null]}`)},
		"own forms": {schema[struct {
			T time.Time       `json:"t"`
			A netip.Addr      `json:"a"`
			B []byte          `json:"b"`
			R json.RawMessage `json:"r" jsonschema:"anything"`
			O ownJSON         `json:"o" jsonschema:"its own"`
			I *big.Int        `json:"i"`
			N json.Number     `json:"n"`
		}](t), object(`"t":{"type":"string"},"a":{"type":"string"},"b":{"type":"string","contentEncoding":"base64"},`+
			`"r":{"description":"anything"},"o":{"description":"its own"},"i":{"type":["null","integer"]},"n":{"type":"number"}`,
			"t", "a", "b", "r", "o", "i", "n")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, want any
			require.NoError(t, json.Unmarshal([]byte(tt.got), &got))
			require.NoError(t, json.Unmarshal([]byte(tt.want), &want), tt.want)
			assert.Equal(t, want, got)
		})
	}
	assert.Less(t, strings.Index(tests["fields"].got, `"source"`), strings.Index(tests["fields"].got, `"limit"`), "in the order of the fields")
}

type ring struct {
	Next *ring `json:"next,omitempty"`
}

func TestTypesWithoutASchema(t *testing.T) {
	t.Parallel()
	problem := func(tool sdk.Tool) string {
		_, err := sdk.NewMCPServer("srv", "", tool)
		all := session.ConfigErrors(err)
		require.Len(t, all, 1, "%v", err)
		return all[0].Problem
	}
	assert.Contains(t, problem(toolOf[[]int]()), "[]int does not encode as a JSON object")
	assert.Contains(t, problem(toolOf[any]()), "does not encode as a JSON object")
	assert.Contains(t, problem(toolOf[json.RawMessage]()), "does not encode as a JSON object")
	assert.Contains(t, problem(toolOf[ring]()), "cycle")
	assert.Contains(t, problem(toolOf[struct{ F func() }]()), "func()")
	assert.Contains(t, problem(toolOf[map[int]string]()), "map key")
	assert.Contains(t, problem(toolOf[struct {
		base `json:"b"`
	}]()), "field base: an embedded field with a JSON name")
	assert.Contains(t, problem(toolOf[struct{ *base }]()), "field base: JSON cannot fill an embedded pointer")
	assert.Contains(t, problem(toolOf[struct{ S []fmt.Stringer }]()), "field S: fmt.Stringer is an interface with methods")
	assert.Contains(t, problem(toolOf[struct {
		N int `json:"n,string"`
	}]()), `field N: the JSON option "string"`)
	assert.Contains(t, problem(toolOf[struct {
		N int8 `json:"n" enum:"1,300"`
	}]()), `field N: enum value "300"`)
	assert.Contains(t, problem(toolOf[struct {
		In struct {
			B bool `json:"b" enum:"true"`
		} `json:"in"`
	}]()), `field In: field B: enum value "true": an enum of bool is not supported`)
	assert.Contains(t, problem(toolOf[struct {
		F float64 `json:"f" enum:"NaN"`
	}]()), "not a JSON number")
}

func toolOf[In any]() sdk.Tool {
	return sdk.NewTool("it", "d", func(context.Context, In) (*sdk.ToolResult, error) { return nil, nil })
}

func TestRawSchemas(t *testing.T) {
	t.Parallel()
	raw := func(schema string) sdk.Tool {
		return sdk.RawTool("it", "d", json.RawMessage(schema), func(_ context.Context, in json.RawMessage) (*sdk.ToolResult, error) {
			return sdk.Text(string(in)), nil
		})
	}
	exactly(t, `{"type":"object","x-mine":{"b":1,"a":2},"properties":{}}`, listed(t, raw("{\n \"type\": \"object\", \"x-mine\": {\"b\":1, \"a\":2}, \"properties\": {}\n}")))
	for schema, want := range map[string]string{
		``:                                 "not a JSON schema",
		`{`:                                "not a JSON schema",
		`true`:                             `its "type" is not "object"`,
		`{"properties":{}}`:                `its "type" is not "object"`,
		`{"type":["object","null"]}`:       `its "type" is not "object"`,
		`{"type":"object","$ref":"#/x/y"}`: "x",
		`{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`:                   "pattern",
		`{"type":"object","$schema":"https://json-schema.org/draft/2019-09/schema"}`: "2019-09/schema is not supported",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`: "example.com",
	} {
		_, err := sdk.NewMCPServer("srv", "", raw(schema))
		all := session.ConfigErrors(err)
		if assert.Len(t, all, 1, schema) {
			assert.Contains(t, all[0].Problem, want, schema)
		}
	}
	s := server(t, raw(rawSchema))
	const args = `{"p":[{"q":1.0}],"u":null,"x-n":"9"}`
	exactly(t, args, call(t, s, "it", args).text()) // as the agent sent it
	for _, nothing := range []string{"", "null", "{}"} {
		assert.Equal(t, "{}", call(t, s, "it", nothing).text())
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	type order struct {
		ID     string            `json:"id"`
		Size   string            `json:"size,omitempty" enum:"s,m"`
		Count  int8              `json:"count,omitempty"`
		Tags   []string          `json:"tags,omitempty"`
		Extra  map[string]int    `json:"extra,omitempty"`
		To     *base             `json:"to,omitempty"`
		Addr   netip.Addr        `json:"addr,omitzero"`
		Weight float32           `json:"weight,omitempty"`
		Notes  map[string]string `json:"notes,omitempty"`
	}
	s := server(t,
		sdk.NewTool("order", "d", func(_ context.Context, in order) (*sdk.ToolResult, error) { return sdk.JSONResult(in), nil }),
		sdk.RawTool("raw", "d", json.RawMessage(rawSchema), func(_ context.Context, in json.RawMessage) (*sdk.ToolResult, error) {
			return sdk.Text(string(in)), nil
		}),
		saying("none", sdk.Text("x"), nil),
	)
	const fields = "the fields are addr, count, extra, id, notes, size, tags, to, weight"
	tests := map[string]struct{ tool, args, want string }{
		"missing":            {"order", `{}`, "id: missing, expected string"},
		"absent":             {"order", ``, "id: missing, expected string"},
		"type":               {"order", `{"id":5}`, "id: expected string, got 5"},
		"null":               {"order", `{"id":null}`, "id: expected string, got null"},
		"unknown":            {"order", `{"id":"x","colour":1}`, "colour: unknown field, " + fields},
		"case":               {"order", `{"ID":"x"}`, "id: missing, expected string; ID: unknown field, " + fields},
		"enum":               {"order", `{"id":"x","size":"xl"}`, `size: expected one of "s", "m", got "xl"`},
		"range":              {"order", `{"id":"x","count":1000}`, `count: expected a value that fits {"type":"integer","minimum":-128,"maximum":127}, got 1000`},
		"fraction":           {"order", `{"id":"x","count":1.5}`, `count: expected a value that fits {"type":"integer","minimum":-128,"maximum":127}, got 1.5`},
		"list":               {"order", `{"id":"x","tags":"a"}`, `tags: expected a value that fits {"type":"array","items":{"type":"string"}}, got "a"`},
		"element":            {"order", `{"id":"x","tags":["a",2,"c",{}]}`, "tags[1]: expected string, got 2; tags[3]: expected string, got {}"},
		"map value":          {"order", `{"id":"x","extra":{"b":"y","a":1.5}}`, `extra.a: expected integer, got 1.5; extra.b: expected integer, got "y"`},
		"nested":             {"order", `{"id":"x","to":{}}`, "to.id: missing, expected string"},
		"nullable":           {"order", `{"id":"x","to":7}`, `to: expected a value that fits {"type":["null","object"],"properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}, got 7`},
		"its own rules":      {"order", `{"id":"x","addr":"1.2.3.400"}`, `addr: ParseAddr("1.2.3.400"): IPv4 field has value >255`},
		"too large for Go":   {"order", `{"id":"x","weight":1e300}`, "weight: expected float32, got number 1e+300"},
		"too large for JSON": {"order", `{"id":"x","weight":1e999}`, "number 1e999 is out of range"},
		"everything":         {"order", `{"size":1,"count":"1"}`, `id: missing, expected string; count: expected a value that fits {"type":"integer","minimum":-128,"maximum":127}, got "1"; size: expected one of "s", "m", got 1`},
		"not an object":      {"order", `["x"]`, `the arguments: expected object, got ["x"]`},
		"long":               {"order", `{"id":["a` + strings.Repeat("ä", 100) + `"]}`, `id: expected string, got ["a` + strings.Repeat("ä", 28) + "…"},
		"no fields":          {"none", `{"a":1}`, "a: unknown field, there are none"},
		"reference":          {"raw", `{"p":[{"q":1},{"q":0},{}]}`, `p[1].q: expected a value that fits {"type":"integer","minimum":1}, got 0; p[2].q: missing, expected a value that fits {"type":"integer","minimum":1}`},
		"list too long":      {"raw", `{"p":[{"q":1},{"q":1},{"q":1},{"q":1}]}`, `p: expected a value that fits {"type":"array","items":{"$ref":"#/definitions/Item"},"maxItems":3}, got [{"q":1},{"q":1},{"q":1},{"q":1}]`},
		"union":              {"raw", `{"u":5}`, `u: expected a value that fits {"anyOf":[{"type":"string"},{"type":"null"}]}, got 5`},
		"pattern property":   {"raw", `{"x-a":5}`, `the arguments: expected`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := call(t, s, tt.tool, tt.args)
			assert.True(t, a.IsError)
			prefix := "MCP error -32602: Input validation error: Invalid arguments for tool " + tt.tool + ": "
			if name == "pattern property" { // too rare to be explained well
				assert.Contains(t, a.text(), prefix+tt.want)
			} else {
				assert.Equal(t, prefix+tt.want, a.text())
			}
			for range 20 {
				require.Equal(t, a.raw, call(t, s, tt.tool, tt.args).raw, "always the same words")
			}
		})
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	t.Parallel()
	s := server(t, toolOf[map[string]int]())
	args := map[string]string{}
	for i := range 1000 {
		args[fmt.Sprintf("k%03d", i)] = "x"
	}
	b, err := json.Marshal(args)
	require.NoError(t, err)
	text := call(t, s, "it", string(b)).text()
	assert.Equal(t, 10, strings.Count(text, "expected integer"))
}

func TestArgumentsReachTheHandler(t *testing.T) {
	t.Parallel()
	type numbers struct {
		I int64    `json:"i,omitempty"`
		U uint64   `json:"u,omitempty"`
		F float64  `json:"f,omitempty"`
		S struct { // duplicate keys: the last one wins, as it was checked
			A string `json:"a,omitempty" enum:"x"`
			B string `json:"b,omitempty"`
		} `json:"s,omitzero"`
		Any any         `json:"any,omitempty"`
		B   *big.Int    `json:"b,omitempty"`
		N   json.Number `json:"n,omitempty"`
	}
	var got numbers
	s := server(t, sdk.NewTool("it", "d", func(_ context.Context, in numbers) (*sdk.ToolResult, error) {
		got = in
		return sdk.Text("ok"), nil
	}))
	for args, want := range map[string]numbers{
		`{"i":9223372036854775807}`:  {I: math.MaxInt64},
		`{"i":-9223372036854775808}`: {I: math.MinInt64},
		`{"u":18446744073709551615}`: {U: math.MaxUint64},
		`{"i":3.0}`:                  {I: 3},
		`{"i":1e3}`:                  {I: 1000},
		`{"f":3,"any":[1.50]}`:       {F: 3, Any: []any{1.5}},
		`{"f":1e300}`:                {F: 1e300},
		`{"b":18446744073709551615}`: {B: new(big.Int).SetUint64(math.MaxUint64)},
		`{"n":1.25}`:                 {N: "1.25"},
	} {
		assert.Equal(t, "ok", call(t, s, "it", args).text(), args)
		assert.Equal(t, want, got, args)
	}
	assert.Equal(t, "ok", call(t, s, "it", `{"s":{"a":"smuggled"},"s":{"b":"y"}}`).text())
	assert.Empty(t, got.S.A, "what was not checked must not arrive")
	assert.Equal(t, "y", got.S.B)
}

// TestWhatGoMarshalsFitsItsSchema: any value of a type, marshalled, is accepted
// and arrives unchanged.
func TestWhatGoMarshalsFitsItsSchema(t *testing.T) {
	t.Parallel()
	type inner struct {
		M map[string]int16 `json:"m,omitempty"`
		P *string          `json:"p"`
	}
	type outer struct {
		S string    `json:"s" enum:"a,b"`
		I int64     `json:"i"`
		U uint64    `json:"u"`
		F float64   `json:"f"`
		B []byte    `json:"b,omitempty"`
		L []inner   `json:"l,omitempty"`
		A [2]bool   `json:"a"`
		T time.Time `json:"t"`
		inner
	}
	var got outer
	s := server(t, sdk.NewTool("it", "d", func(_ context.Context, in outer) (*sdk.ToolResult, error) {
		got = in
		return sdk.Text("ok"), nil
	}))
	genInner := rapid.Custom(func(t *rapid.T) inner {
		return inner{
			M: rapid.MapOfN(rapid.String(), rapid.Int16(), 1, 3).Draw(t, "m"),
			P: rapid.Ptr(rapid.String(), true).Draw(t, "p"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		want := outer{
			S: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "s"), I: rapid.Int64().Draw(rt, "i"), U: rapid.Uint64().Draw(rt, "u"),
			F: rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(rt, "f"),
			B: rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(rt, "b"), L: rapid.SliceOfN(genInner, 1, 3).Draw(rt, "l"),
			A: [2]bool{rapid.Bool().Draw(rt, "a0"), rapid.Bool().Draw(rt, "a1")},
			T: time.Unix(rapid.Int64Range(0, 1<<33).Draw(rt, "t"), 0).UTC(), inner: genInner.Draw(rt, "inner"),
		}
		b, err := json.Marshal(want)
		require.NoError(rt, err)
		raw, err := s.Handle(context.Background(), "tools/call", params(t, "it", string(b), ""))
		require.NoError(rt, err)
		require.Contains(rt, string(raw), `"ok"`)
		require.Equal(rt, want, got)
	})
}

func TestReferences(t *testing.T) {
	t.Parallel()
	const ring, out = "its references form a cycle", "refers outside of the schema"
	for schema, want := range map[string]string{
		`{"type":"object","$ref":"#"}`:                                                                                 ring,
		`{"type":"object","$REF":"#"}`:                                                                                 ring,
		`{"type":"object","allOf":[{"anyOf":[{"oneOf":[{"not":{"$ref":"#"}}]}]}]}`:                                     ring,
		`{"type":"object","if":{"$ref":"#/then"},"then":{"else":{"$ref":"#/if"},"if":true}}`:                           ring,
		`{"type":"object","dependentSchemas":{"a":{"$ref":"#"}}}`:                                                      ring,
		`{"type":"object","$defs":{"a/b":{"$ref":"#/$defs/c~0d"},"c~d":{"$ref":"#/$defs/a~1b"}}}`:                      ring,
		`{"type":"object","properties":{"x":{"allOf":[{"$ref":"#/properties/x"}]}}}`:                                   ring,
		`{"type":"object","properties":{"x":{"allOf":[true,{"$ref":"#/properties/x/allOf/1"}]}}}`:                      ring,
		`{"type":"object","$defs":{"n":{"$anchor":"n","anyOf":[{"$ref":"#n"}]}}}`:                                      ring,
		`{"type":"object","$dynamicAnchor":"n","allOf":[{"$dynamicRef":"#n"}]}`:                                        ring,
		`{"type":"object","properties":{"x":{"$ref":"other.json"}}}`:                                                   out,
		`{"type":"object","properties":{"x":{"$id":"http://a/b","type":"string"}}}`:                                    "is not supported",
		`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`:                                "",
		`{"type":"object","$id":"http://a/b","$defs":{"s":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/s"}}}`: "",
		`{"type":"object","properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}`:                            "",
		`{"type":"object","enum":[{"$ref":"elsewhere","$id":"x"}]}`:                                                    "",
	} {
		_, err := sdk.NewMCPServer("srv", "", sdk.RawTool("it", "d", json.RawMessage(schema), func(context.Context, json.RawMessage) (*sdk.ToolResult, error) {
			return sdk.Text("ok"), nil
		}))
		if want == "" {
			assert.NoError(t, err, schema)
			continue
		}
		assert.ErrorContains(t, err, want, schema)
	}
}

func TestRecursiveArguments(t *testing.T) {
	t.Parallel()
	s := server(t,
		sdk.RawTool("tree", "d", json.RawMessage(`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":false}`),
			func(context.Context, json.RawMessage) (*sdk.ToolResult, error) { return sdk.Text("ok"), nil }),
		toolOf[map[string]any](),
	)
	assert.Equal(t, "ok", call(t, s, "tree", `{"kids":[{"kids":[{}]}]}`).text())
	// Values below a reference to the schema itself are not checked field by field.
	assert.Contains(t, call(t, s, "tree", `{"kids":[{"kids":7}]}`).text(), `the arguments: expected a value that fits {"type":"object","properties":{"kids":`)
	assert.Contains(t, call(t, s, "tree", `{"kid":[]}`).text(), "kid: unknown field, the fields are kids")
	deep := `{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"
	assert.Contains(t, call(t, s, "it", deep).text(), "nested more than 100 deep")
}

// FuzzRawSchema: no schema and no arguments crash the host, and what is wrong
// is always said in the same words.
func FuzzRawSchema(f *testing.F) {
	f.Add([]byte(rawSchema), []byte(`{"p":[{"q":0}],"u":5,"x-a":1,"z":null}`))
	f.Add([]byte(`{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`), []byte(`{"x":1}`))
	f.Add([]byte(`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"if":{},"then":false}`), []byte(`{"a":1,"b":2}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"prefixItems":[true,false],"items":{"type":"null"},"uniqueItems":true}},"unevaluatedProperties":false}`), []byte(`{"a":[1,2,3,3]}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"multipleOf":0,"enum":[],"const":null}},"dependentRequired":{"a":["b"]}}`), []byte(`{"a":7}`))
	f.Add([]byte(`{"type":"object","$id":"http://a/b","properties":{"a":{"$ref":"#"}},"minProperties":1}`), []byte(`{"a":{}}`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		s, err := sdk.NewMCPServer("srv", "", sdk.RawTool("it", "d", schema, func(_ context.Context, in json.RawMessage) (*sdk.ToolResult, error) {
			return sdk.Text(string(in)), nil
		}))
		if err != nil {
			require.NotEmpty(t, session.ConfigErrors(err))
			return
		}
		if !json.Valid(args) {
			return // the message would not have been one
		}
		p := params(t, "it", string(args), "")
		first, err := s.Handle(context.Background(), "tools/call", p)
		require.NoError(t, err)
		again, err := s.Handle(context.Background(), "tools/call", p)
		require.NoError(t, err)
		require.Equal(t, string(first), string(again))
		require.NotContains(t, string(first), `for tool it: "`, "something must be said")
	})
}
