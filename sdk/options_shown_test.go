package sdk

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// mark puts a text that names its place into every string that v can hold.
func mark(v reflect.Value, at string, depth int) {
	if depth > 6 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("MARK-" + at + "-")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		mark(v.Elem(), at, depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`"MARK-` + at + `-"`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		mark(v.Index(0), at, depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		mark(key, at, depth+1)
		mark(value, at, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		switch x := v.Addr().Interface().(type) {
		case *session.Set:
			*x = Only("MARK-" + at + "-")
			return
		case *Opt[string]:
			*x = Some("MARK-" + at + "-")
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				mark(v.Field(i), strings.TrimPrefix(at+"."+f.Name, "."), depth+1)
			}
		}
	}
}

// shownInAllWays is what Go programs print and log of a value.
func shownInAllWays(v any) map[string]string {
	ways := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		ways[verb] = fmt.Sprintf(verb, v)
	}
	// Hexadecimal digits are read back, so that a mark in them is found.
	ways["%x"] = regexp.MustCompile(`[0-9a-f]{8,}`).ReplaceAllStringFunc(ways["%x"], func(digits string) string {
		if text, err := hex.DecodeString(digits); err == nil {
			return string(text)
		}
		return digits
	})
	ways["Sprint"] = fmt.Sprint(v)
	ways["error"] = fmt.Errorf("with %v", v).Error()
	var b bytes.Buffer
	for name, h := range map[string]slog.Handler{"text": slog.NewTextHandler(&b, nil), "json": slog.NewJSONHandler(&b, nil)} {
		b.Reset()
		slog.New(h).With("a", v).WithGroup("g").Info("x", "v", v, slog.Group("in", "v", v))
		ways["slog "+name] = b.String()
	}
	return ways
}

func marks(s string) []string {
	found := map[string]bool{}
	var out []string
	for _, m := range regexp.MustCompile(`MARK-[\w.]*-`).FindAllString(s, -1) {
		if m = strings.Trim(m, "-"); !found[m] {
			found[m] = true
			out = append(out, strings.TrimPrefix(m, "MARK-"))
		}
	}
	return out
}

// Printed and logged options show the fields of this list and no other: a new field is
// hidden until it is added here.
func TestPrintedOptionsShowOnlyWhatIsHarmless(t *testing.T) {
	t.Parallel()
	options := []string{"Agent", "Cwd", "Effort", "FallbackModel", "MCPServersDelivery", "Model", "PathToExecutable", "PermissionMode",
		"PermissionPrompts", "PluginDelivery", "Resume", "SessionID", "SettingSources"}
	input := make([]string, len(options))
	for i, name := range options {
		input[i] = "Options." + name
	}
	server := []string{"Command", "Type"}
	auth := []string{"Type", "EnvVar"}
	var o Options
	var d dialect.Input
	var s MCPServerConfig
	var a session.Auth
	for _, v := range []any{&o, &d, &s, &a} {
		mark(reflect.ValueOf(v).Elem(), "", 0)
	}
	require.Equal(t, map[string]string{"MARK-MCPServers.Headers-": "MARK-MCPServers.Headers-"}, o.MCPServers["MARK-MCPServers-"].Headers, "the test fills what is nested")
	for name, c := range map[string]struct {
		v    any
		want []string
	}{
		"Options": {o, options}, "*Options": {&o, options}, "dialect.Input": {d, input}, "*dialect.Input": {&d, input},
		"MCPServerConfig": {s, server}, "*MCPServerConfig": {&s, server}, "Auth": {a, auth}, "*Auth": {&a, auth},
	} {
		for how, shown := range shownInAllWays(c.v) {
			assert.ElementsMatch(t, c.want, marks(shown), "%s %s: %s", name, how, shown)
		}
		for how, shown := range map[string]string{
			"slice":  fmt.Sprintf("%v %+v %#v", []any{c.v}, []any{c.v}, []any{c.v}),
			"map":    fmt.Sprintf("%v %+v %#v", map[string]any{"k": c.v}, map[string]any{"k": c.v}, map[string]any{"k": c.v}),
			"struct": fmt.Sprintf("%v %+v %#v", struct{ V any }{c.v}, struct{ V any }{c.v}, struct{ V any }{c.v}),
		} {
			assert.ElementsMatch(t, c.want, marks(shown), "%s in a %s: %s", name, how, shown)
		}
	}
	in := fmt.Sprintf("%v %+v %#v", o.MCPServers, o.MCPServers, []MCPServerConfig{s})
	for _, mark := range marks(in) {
		assert.Contains(t, []string{"MCPServers", "MCPServers.Command", "MCPServers.Type", "Command", "Type"}, mark, in)
	}
}

// The harmless fields are not where a secret can hide either.
func TestPrintedOptionsHideURLs(t *testing.T) {
	t.Parallel()
	o := Options{Model: "https://u:SECRET@h/m", Cwd: "/x\x1b[2J", MaxTurns: Some(3), Env: map[string]string{"K": "SECRET"}, Debug: true}
	assert.Equal(t, "session.Options{Cwd:(hidden) Env:(1 hidden) Debug:true Model:(hidden) MaxTurns:3}", o.String())
	for raw, want := range map[string]string{
		"https://u:SECRET@h:1/SECRET?k=SECRET#SECRET": "https://h:1/(hidden)",
		"https://h":      "https://h",
		"h/SECRET":       "(hidden)",
		"ht tp://SECRET": "(hidden)",
	} {
		assert.Equal(t, "session.MCPServerConfig{Type:http URL:"+want+"}", MCPServerConfig{Type: "http", URL: raw}.String())
	}
	assert.Equal(t, "session.Options{}", Options{}.String())
	assert.Equal(t, "<nil>", fmt.Sprint((*Options)(nil)))
}
