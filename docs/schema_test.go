package docs_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

var update = flag.Bool("update", false, "write ../schema/options.schema.json")

type schema = jsonschema.Schema

func typed(kinds ...string) *schema {
	if len(kinds) == 1 {
		return &schema{Type: kinds[0]}
	}
	return &schema{Types: kinds}
}

func listOf(s *schema) *schema { return &schema{Type: "array", Items: s} }

func anyOf(s ...*schema) *schema { return &schema{AnyOf: s} }

func enum(values ...any) *schema { return &schema{Enum: values} }

// object is an object of these keys alone; those whose names end with ! are
// required.
func object(keys map[string]*schema) *schema {
	s := &schema{Type: "object", Properties: map[string]*schema{}, AdditionalProperties: &schema{Not: &schema{}}}
	for key, v := range keys {
		name, required := strings.CutSuffix(key, "!")
		s.Properties[name] = v
		if required {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
	return s
}

func mapOf(v *schema) *schema { return &schema{Type: "object", AdditionalProperties: v} }

// forms are the schemas of types that are written in more than one way.
func forms(t *testing.T) map[reflect.Type]*schema {
	t.Helper()
	text := typed("string")
	secret := anyOf(text, object(map[string]*schema{"envVar": text}))
	policy := object(map[string]*schema{"name!": text, "permission_policy": enum(session.AlwaysAllow, session.AlwaysAsk, session.AlwaysDeny, ""),
		"org_max_permission": enum("allow", "ask", "blocked", ""), "exposedName": text, "alwaysLoad": typed("boolean")})
	server := object(map[string]*schema{"type": enum("stdio", "sse", "http", ""), "command": text, "args": listOf(text), "env": mapOf(text),
		"url": text, "headers": mapOf(text), "headersHelper": text, "oauth": typed("object"), "timeout": {Type: "number", Minimum: new(float64)},
		"alwaysLoad": typed("boolean"), "tools": listOf(policy), "shared": typed("boolean"), "extra": typed("object")})
	prompt := anyOf(text, listOf(text), typed("null"),
		object(map[string]*schema{"type!": enum("preset"), "preset": text, "append": text, "excludeDynamicSections": typed("boolean"), "snapshot": typed("boolean", "null")}),
		object(map[string]*schema{"type!": enum("custom"), "prompt!": anyOf(text, listOf(text)), "snapshot": typed("boolean", "null")}),
		object(map[string]*schema{"type!": enum("file"), "path!": {Type: "string", MinLength: jsonschema.Ptr(1)}}))
	return map[reflect.Type]*schema{
		reflect.TypeFor[time.Duration](): {Type: "string", Pattern: `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`,
			Description: "a duration, such as 90s"},
		reflect.TypeFor[sdk.Opt[string]]():        typed("string", "null"),
		reflect.TypeFor[sdk.Opt[bool]]():          typed("boolean", "null"),
		reflect.TypeFor[sdk.Opt[int]]():           typed("integer", "null"),
		reflect.TypeFor[sdk.Opt[float64]]():       typed("number", "null"),
		reflect.TypeFor[json.RawMessage]():        {},
		reflect.TypeFor[session.Set]():            anyOf(listOf(text), enum("all"), object(map[string]*schema{"type!": enum("preset"), "preset": text}), typed("null")),
		reflect.TypeFor[session.SystemPrompt]():   prompt,
		reflect.TypeFor[session.Auth]():           object(map[string]*schema{"type!": enum("accessToken", "qodercli", "serviceAccount", "jobToken"), "accessToken": secret, "serviceAccountKey": secret}),
		reflect.TypeFor[sdk.MCPServerConfig]():    server,
		reflect.TypeFor[session.AgentMCPServer](): anyOf(text, mapOf(server)),
		reflect.TypeFor[protocol.Effort]():        anyOf(text, typed("integer")),
	}
}

// generated is the schema of a configuration.
func generated(t *testing.T) []byte {
	t.Helper()
	optionsType := reflect.TypeFor[sdk.Options]()
	s, err := jsonschema.ForType(optionsType, &jsonschema.ForOptions{TypeSchemas: forms(t)})
	require.NoError(t, err)
	describe(s, optionsType, comments(t))
	text, object := typed("string"), typed("object")
	p := s.Properties
	also := func(name, of string, v *schema) {
		v.Description = "the same as " + of
		p[name] = v
		s.PropertyOrder = append(s.PropertyOrder, name)
	}
	for _, name := range []string{"pathToClaudeCodeExecutable", "pathToQoderCLIExecutable", "cliPath"} {
		also(name, "pathToExecutable", typed("string"))
	}
	duration := func(name, of string) {
		v := *forms(t)[reflect.TypeFor[time.Duration]()]
		v.Description = "a duration: " + of
		p[name] = &v
		s.PropertyOrder = append(s.PropertyOrder, name)
	}
	duration("controlRequestTimeout", "how long a call to the agent may take, Limits.Control in Go. 0: no limit. Default: 60s. Host only.")
	duration("closeGrace", "the wait from the end of stdin to SIGTERM, Graces.EOF in Go. Default: the backend's own. Host only.")
	either := func(name string, more ...*schema) {
		was := *p[name]
		was.Description = ""
		p[name] = &schema{Description: p[name].Description, AnyOf: append(more, &was)}
	}
	either("mcpServers", text)
	p["settings"].AnyOf = []*schema{object, {Type: "string", Title: "a text: the path of a file"}, typed("null")}
	for _, name := range []string{"managedSettings", "customContext", "modelRequestPatches"} {
		p[name].Types = []string{"object", "null"}
	}
	p["env"].AdditionalProperties = typed("string", "null")
	p["outputFormat"].Properties["schema"].Type = "object"
	either("taskBudget", &schema{Type: "object", Properties: map[string]*schema{"total": typed("integer", "null")},
		AdditionalProperties: &schema{Not: &schema{}}})
	open(s)
	also("$schema", "nothing: for editors", typed("string"))
	complete(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Options of a Troupe session"
	s.Description = "What sdk.LoadOptions and troupe --config read, in JSON or YAML."
	s.Defs = map[string]*schema{"env": {
		Type: "object", Description: "a text with ${NAME} and ${NAME:-default} replaced by environment variables",
		Properties: map[string]*schema{"$env": {Type: "string", Pattern: `\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`}},
		Required:   []string{"$env"}, AdditionalProperties: &schema{Not: &schema{}},
	}}
	for name, w := range words() {
		s.Defs[name] = anyOf(w, &schema{Ref: "#/$defs/env"})
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	return append(raw, '\n')
}

// open lets every key that need not be given be null, which is the same.
func open(s *schema) {
	if s == nil {
		return
	}
	for name, v := range s.Properties {
		open(v)
		if !slices.Contains(s.Required, name) {
			orNull(v)
		}
	}
	for _, v := range s.AnyOf {
		open(v)
	}
	for _, v := range []*schema{s.Items, s.AdditionalProperties} { // what has a place has a value
		if open(v); v != nil && slices.Contains(v.Types, "array") {
			v.Type, v.Types = "array", nil
		}
	}
}

// orNull lets a schema be null: that of a word, a list, a map or a choice. An object of fixed keys stays one.
func orNull(s *schema) {
	isNull := func(of *schema) bool { return of.Type == "null" || slices.Contains(of.Types, "null") }
	switch {
	case isNull(s) || slices.ContainsFunc(s.AnyOf, isNull) || len(s.Properties) > 0:
	case len(s.AnyOf) > 0:
		s.AnyOf = append(s.AnyOf, typed("null"))
	case len(s.Enum) > 0:
		s.Enum = append(s.Enum, nil)
	case s.Type != "":
		s.Type, s.Types = "", []string{s.Type, "null"}
	}
}

// complete adds what holds everywhere: durations in milliseconds, extra keys,
// and {"$env": …} for whatever is written as one word.
func complete(s *schema) {
	if s == nil {
		return
	}
	for name, v := range s.Properties {
		if v.Pattern != "" && strings.HasPrefix(v.Description, "a duration") || strings.Contains(v.Pattern, "µs") {
			s.Properties[name+"Ms"] = &schema{Types: []string{"number", "null"}, Title: "a number of milliseconds", Description: name + " in milliseconds"}
		}
	}
	for _, v := range s.Properties {
		complete(v)
	}
	for _, v := range s.AnyOf {
		complete(v)
	}
	complete(s.Items)
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		complete(s.AdditionalProperties)
	}
	kinds := append(slices.Clone(s.Types), s.Type)
	if slices.ContainsFunc(kinds, func(k string) bool { return k == "string" || k == "boolean" || k == "integer" || k == "number" }) {
		was := *s
		was.Description = ""
		if name := word(&was); name != "" {
			*s = schema{Description: s.Description, Ref: "#/$defs/" + name}
			return
		}
		*s = schema{Description: s.Description, AnyOf: []*schema{&was, {Ref: "#/$defs/env"}}}
	}
}

// words are the schemas of what is written as one word.
func words() map[string]*schema {
	return map[string]*schema{"text": typed("string"), "boolean": typed("boolean"), "integer": typed("integer"), "number": typed("number"),
		"maybeText": typed("string", "null"), "maybeBoolean": typed("boolean", "null"), "maybeInteger": typed("integer", "null"),
		"maybeNumber": typed("number", "null")}
}

// word is the name of s among words, "" if it is none.
func word(s *schema) string {
	for name, w := range words() {
		if reflect.DeepEqual(s, w) {
			return name
		}
	}
	return ""
}

// describe puts the comments of fields into the schema of their struct.
func describe(s *schema, t reflect.Type, docs map[string]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case s == nil:
		return
	case t.Kind() == reflect.Slice:
		describe(s.Items, t.Elem(), docs)
		return
	case t.Kind() == reflect.Map:
		describe(s.AdditionalProperties, t.Elem(), docs)
		return
	case t.Kind() != reflect.Struct || len(s.Properties) == 0:
		return
	}
	if _, opaque := t.FieldByName("Extra"); opaque && t.Name() != "MCPServer" {
		s.Properties["extra"] = &schema{Type: "object", Description: docs[t.Name()+".Extra"]}
	}
	if t.Name() == "SecurityScan" { // absent is false
		s.Required = nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if v := s.Properties[name]; v != nil {
			describe(v, f.Type, docs)
			v.Description = docs[t.Name()+"."+f.Name]
		}
	}
}

// comments are the doc comments of the fields of structs, by Type.Field, on one
// line each.
func comments(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, pattern := range []string{"../session/*.go", "../policy/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				fields, ok := spec.Type.(*ast.StructType)
				if !ok {
					return false
				}
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						docs[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
				return false
			})
		}
	}
	return docs
}

func TestSchemaIsUpToDate(t *testing.T) {
	t.Parallel()
	got := generated(t)
	if *update {
		require.NoError(t, os.WriteFile("../schema/options.schema.json", got, 0o644))
	}
	want, err := os.ReadFile("../schema/options.schema.json")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "run go test ./docs -update")
}

// TestSchemaAndLoaderAgree has both read the same configurations.
func TestSchemaAndLoaderAgree(t *testing.T) {
	t.Parallel()
	var s schema
	require.NoError(t, json.Unmarshal(generated(t), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	all, err := os.ReadFile("../sdk/testdata/config/all.yaml")
	require.NoError(t, err)
	claude, err := os.ReadFile("../internal/command/testdata/options/claude.yaml")
	require.NoError(t, err)
	qoder, err := os.ReadFile("../internal/command/testdata/options/qoder.yaml")
	require.NoError(t, err)
	there := sdk.ExpandWith(func(string) (string, bool) { return "1", true })
	for doc, fine := range map[string]bool{
		string(all): true, string(claude): true, string(qoder): true, "{}": true,
		"settings: a.json": true, "settings: {a: 1}": true, "mcpServers: m.json": true, "taskBudget: 3": true, "tools: all": true,
		"systemPrompt: hi": true, "systemPrompt: [a]": true, "systemPrompt: {type: file, path: p}": true, "env: {A: null}": true,
		`maxTurns: {$env: "${N}"}`: true, `debug: {$env: "${N}"}`: true, "closeTimeout: 1h30m": true, "sandbox: {extra: {a: 1}}": true,
		"agents: {a: {description: d, prompt: p, mcpServers: [x, {y: {command: c}, z: {command: c}}]}}": true,
		"securityScan: {l3DeepScan: true}": true, "plugins: [{path: p}]": true, "cliPath: /q": true,
		"toolz: [a]": false, "maxTurns: many": false, "maxTurns: 1.5": false, "env: {A: 1}": false, "tools: some": false,
		"model: {$env: NAME}": false, "closeTimeout: 5": false, "closeTimeout: soon": false, "sandbox: {netwrk: {}}": false,
		"systemPrompt: {type: text}": false, "auth: {type: password}": false, "mcpServers: {a: {type: sdk}}": false,
		"mcpServers: {a: {comand: x}}": false, "settings: [1]": false, "managedSettings: x": false, "canUseTool: x": false,
		"allowedTools: Read": false, "agents: {a: {promt: d}}": false, "plugins: [{typ: local}]": false,
	} {
		_, loaded := sdk.LoadOptions(strings.NewReader(doc), there)
		assert.Equal(t, fine, loaded == nil, "the loader: %s\n%v", doc, loaded)
		asJSON, err := yaml.YAMLToJSON([]byte(doc))
		require.NoError(t, err)
		var instance any
		require.NoError(t, json.Unmarshal(asJSON, &instance))
		checked := resolved.Validate(instance)
		assert.Equal(t, fine, checked == nil, "the schema: %s\n%v", doc, checked)
	}
}

func TestEveryOptionIsDescribed(t *testing.T) {
	t.Parallel()
	docs := comments(t)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[sdk.Options]()) {
		doc := docs["Options."+f.Name]
		assert.True(t, strings.HasPrefix(doc, f.Name), "sdk.Options.%s: %q", f.Name, doc)
		if f.Tag.Get("json") == "-" {
			continue
		}
		assert.Contains(t, doc, "Default: ", "sdk.Options.%s", f.Name)
		assert.Regexp(t, `(Both|Claude|Qoder): |Host only`, doc, "sdk.Options.%s says what becomes of it", f.Name)
	}
}
