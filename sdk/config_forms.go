package sdk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/dialect"
)

// configForm reads the types that the vendors write in more than one way; nil
// for all others.
func configForm(t reflect.Type) func(r *configReader, n *configNode, v reflect.Value, at string) {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return (*configReader).duration
	case reflect.TypeFor[json.RawMessage]():
		return func(r *configReader, n *configNode, v reflect.Value, at string) { v.SetBytes(r.raw(n, at)) }
	case reflect.TypeFor[Set]():
		return (*configReader).set
	case reflect.TypeFor[SystemPrompt]():
		return (*configReader).systemPrompt
	case reflect.TypeFor[Auth]():
		return (*configReader).auth
	case reflect.TypeFor[MCPServerConfig]():
		return (*configReader).mcpServer
	case reflect.TypeFor[[]AgentMCPServer]():
		return (*configReader).agentServers
	case reflect.TypeFor[textsForm]():
		return func(r *configReader, n *configNode, v reflect.Value, at string) {
			v.Set(reflect.ValueOf(textsForm(r.texts(n, at))))
		}
	case reflect.TypeFor[millisForm]():
		return (*configReader).millis
	}
	return nil
}

func (r *configReader) duration(n *configNode, v reflect.Value, at string) {
	if n.kind == configNull {
		return
	}
	d, err := time.ParseDuration(n.text)
	if n.kind != configText || err != nil {
		r.fail(n, at, "is no duration", "write 90s, 1m30s or 500ms")
		return
	}
	v.SetInt(int64(d))
}

// set reads a list, "all", or {"type":"preset"}, which is all.
func (r *configReader) set(n *configNode, v reflect.Value, at string) {
	var s Set
	switch {
	case n.kind == configNull:
	case n.kind == configText && n.text == "all":
		s = All()
	case n.kind == configList:
		var names []string
		r.decode(n, reflect.ValueOf(&names).Elem(), at)
		s = Only(names...)
	case n.kind == configObject:
		var preset struct {
			Type   string `json:"type"`
			Preset string `json:"preset"`
		}
		r.decode(n, reflect.ValueOf(&preset).Elem(), at)
		if preset.Type != "preset" {
			r.fail(n.under("type"), configPath(at, "type"), "has to be preset", "")
		}
		s = All()
	default:
		r.mismatch(n, `a list, "all", or an object of type preset`, at)
	}
	v.Set(reflect.ValueOf(s))
}

func (r *configReader) systemPrompt(n *configNode, v reflect.Value, at string) {
	var p SystemPrompt
	switch n.kind {
	case configNull:
	case configText, configList:
		p.Blocks = r.texts(n, at)
	case configObject:
		p = r.systemPromptObject(n, at)
	default:
		r.mismatch(n, "a text, a list of texts, or an object", at)
	}
	v.Set(reflect.ValueOf(p))
}

// texts reads a text, or a list of them.
func (r *configReader) texts(n *configNode, at string) []string {
	if n = r.expand(n, at); n.kind == configText {
		return []string{n.text}
	}
	list := []string{}
	r.decode(n, reflect.ValueOf(&list).Elem(), at)
	return list
}

func (r *configReader) systemPromptObject(n *configNode, at string) SystemPrompt {
	var kind string
	for _, p := range n.pairs {
		if p.key.text == "type" {
			kind = p.value.text
		}
	}
	switch kind {
	case "preset":
		var p struct {
			Type                   string    `json:"type"`
			Preset                 string    `json:"preset"`
			Append                 string    `json:"append"`
			ExcludeDynamicSections bool      `json:"excludeDynamicSections"`
			Snapshot               Opt[bool] `json:"snapshot"`
		}
		r.decode(n, reflect.ValueOf(&p).Elem(), at)
		return SystemPrompt{Preset: true, Append: p.Append, ExcludeDynamicSections: p.ExcludeDynamicSections, Snapshot: p.Snapshot}
	case "custom":
		var p struct {
			Type     string    `json:"type"`
			Prompt   textsForm `json:"prompt"`
			Snapshot Opt[bool] `json:"snapshot"`
		}
		r.decode(n, reflect.ValueOf(&p).Elem(), at)
		if p.Prompt == nil {
			r.fail(n, configPath(at, "prompt"), "is missing", "give it")
		}
		return SystemPrompt{Blocks: p.Prompt, Snapshot: p.Snapshot}
	case "file":
		var p struct {
			Type string `json:"type"`
			Path string `json:"path"`
		}
		r.decode(n, reflect.ValueOf(&p).Elem(), at)
		if p.Path == "" {
			r.fail(n, configPath(at, "path"), "is empty", "give the file")
		}
		return SystemPrompt{File: p.Path}
	}
	r.fail(n.under("type"), configPath(at, "type"), "has to be preset, custom or file", "")
	return SystemPrompt{}
}

// textsForm is a list of texts that may be written as one.
type textsForm []string

// secretForm is a secret, or the variable that holds it.
type secretForm struct{ text, envVar string }

// secret reads one. variable is where it is if the object does not say.
func (r *configReader) secret(n *configNode, at, variable string) (s secretForm) {
	if n = r.expand(n, at); n.kind != configObject {
		r.decode(n, reflect.ValueOf(&s.text).Elem(), at)
		return s
	}
	var from struct {
		EnvVar string `json:"envVar"`
	}
	r.decode(n, reflect.ValueOf(&from).Elem(), at)
	s.envVar = cmp.Or(from.EnvVar, variable)
	return s
}

func (r *configReader) auth(n *configNode, v reflect.Value, at string) {
	var a Auth
	if !r.want(n, configObject, at) {
		return
	}
	r.each(n, at, func(key, value *configNode, at string) {
		switch key.text {
		case "type":
			var kind string
			r.decode(value, reflect.ValueOf(&kind).Elem(), at)
			a.Type = dialect.AuthType(kind)
		case "accessToken":
			s := r.secret(value, at, dialect.DefaultTokenEnv)
			a.AccessToken, a.EnvVar = s.text, s.envVar
		case "serviceAccountKey":
			s := r.secret(value, at, dialect.DefaultServiceAccountEnv)
			a.ServiceAccountKey, a.EnvVar = s.text, s.envVar
		default:
			r.unknown(key, at, map[string]configField{"type": {}, "accessToken": {}, "serviceAccountKey": {}})
		}
	})
	known := []dialect.AuthType{dialect.AuthAccessToken, dialect.AuthQoderCLI, dialect.AuthServiceAccount, dialect.AuthJobToken}
	if !slices.Contains(known, a.Type) {
		r.fail(n.under("type"), configPath(at, "type"), "is not known", fmt.Sprintf("use one of %v", known))
	}
	v.Set(reflect.ValueOf(a))
}

// mcpServerForm is a server as the vendors write it.
type mcpServerForm struct {
	Type          string                     `json:"type"`
	Command       string                     `json:"command"`
	Args          []string                   `json:"args"`
	Env           map[string]string          `json:"env"`
	URL           string                     `json:"url"`
	Headers       map[string]string          `json:"headers"`
	HeadersHelper string                     `json:"headersHelper"`
	OAuth         json.RawMessage            `json:"oauth"`
	Timeout       millisForm                 `json:"timeout"`
	AlwaysLoad    bool                       `json:"alwaysLoad"`
	Tools         []MCPToolPolicy            `json:"tools"`
	Extra         map[string]json.RawMessage `json:"-"`
}

// millisForm is a duration in milliseconds.
type millisForm time.Duration

func (r *configReader) mcpServer(n *configNode, v reflect.Value, at string) {
	var f mcpServerForm
	for _, p := range n.pairs {
		if p.key.text == "type" && p.value.text == "sdk" {
			r.fail(p.value, configPath(at, "type"), "is a server that runs in the host", "make it in Go, and give it in Options.SDKMCPServers")
			return
		}
	}
	r.decodeStruct(n, reflect.ValueOf(&f).Elem(), at)
	if !slices.Contains([]string{"", "stdio", "sse", "http"}, f.Type) {
		r.fail(n.under("type"), configPath(at, "type"), "is not known", "use stdio, sse or http")
	}
	if f.OAuth != nil {
		r.want(n.under("oauth"), configObject, configPath(at, "oauth"))
	}
	for i, t := range f.Tools {
		if !slices.Contains([]string{"", dialect.AlwaysAllow, dialect.AlwaysAsk, dialect.AlwaysDeny}, t.PermissionPolicy) {
			at := fmt.Sprintf("%s.tools[%d].permission_policy", at, i)
			r.fail(n.under("tools").list[i].under("permission_policy"), at, "is not known", "use always_allow, always_ask or always_deny")
		}
	}
	v.Set(reflect.ValueOf(MCPServerConfig{
		Type: f.Type, Command: f.Command, Args: f.Args, Env: f.Env, URL: f.URL, Headers: f.Headers,
		HeadersHelper: f.HeadersHelper, OAuth: f.OAuth, Timeout: time.Duration(f.Timeout),
		AlwaysLoad: f.AlwaysLoad, Tools: f.Tools, Extra: f.Extra,
	}))
}

// agentServers reads names, and objects with a server under each key.
func (r *configReader) agentServers(n *configNode, v reflect.Value, at string) {
	if n.kind == configNull || !r.want(n, configList, at) {
		return
	}
	out := make([]AgentMCPServer, 0, len(n.list))
	for i, item := range n.list {
		at := fmt.Sprintf("%s[%d]", at, i)
		if item = r.expand(item, at); item.kind == configText {
			out = append(out, AgentMCPServer{Name: item.text})
			continue
		}
		if item.kind != configObject {
			r.mismatch(item, "a text or an object", at)
			continue
		}
		r.each(item, at, func(key, value *configNode, at string) {
			config := &MCPServerConfig{}
			r.decode(value, reflect.ValueOf(config).Elem(), at)
			out = append(out, AgentMCPServer{Name: key.text, Config: config})
		})
	}
	v.Set(reflect.ValueOf(out))
}

// configCallbacks are options of the vendors' SDKs that are functions or
// objects of a program.
func configCallbacks(key string) bool {
	return slices.Contains([]string{"abortController", "backend", "runtime", "spawner", "canUseTool", "hooks", "resolveModel",
		"onElicitation", "onUserDialog", "onAuthExpired", "onEvent", "stderr", "sessionStore", "spawnQoderCLIProcess",
		"spawnClaudeCodeProcess", "limits", "graces"}, key)
}

// options reads the top of a configuration.
func (r *configReader) options(n *configNode, o *Options) {
	if !r.want(n, configObject, "") {
		return
	}
	v := reflect.ValueOf(o).Elem()
	keys, by := configKeys(v.Type()), map[int]string{}
	for _, name := range []string{"pathToClaudeCodeExecutable", "pathToQoderCLIExecutable", "cliPath"} {
		keys[name] = keys["pathToExecutable"]
	}
	r.each(n, "", func(key, value *configNode, at string) {
		f, known := keys[key.text]
		switch {
		case key.text == "$schema":
			r.want(value, configText, at)
			return
		case !known && configCallbacks(key.text):
			r.fail(key, at, "is no data", "set it in Go")
			return
		case !known:
			r.unknown(key, at, keys)
			return
		case by[f.index] != "":
			r.fail(key, at, "says the same as "+by[f.index], "leave one of them out")
			return
		}
		if value.kind != configNull {
			by[f.index] = key.text
		}
		if f.ms {
			r.millis(value, v.Field(f.index), at)
			return
		}
		r.option(key.text, value, o, v.Field(f.index))
	})
	o.UnsetEnv = append(o.UnsetEnv, r.unset...)
}

// option reads one option, of which some have forms of their own.
func (r *configReader) option(key string, n *configNode, o *Options, v reflect.Value) {
	n = r.expand(n, key)
	switch key {
	case "settings":
		r.settings(n, o)
	case "mcpServers":
		if n.kind == configText {
			o.MCPConfigPath = n.text
			return
		}
		r.decode(n, v, key)
	case "env":
		r.env(n, o)
	case "taskBudget":
		if n.kind == configObject {
			var budget struct {
				Total Opt[int] `json:"total"`
			}
			r.decode(n, reflect.ValueOf(&budget).Elem(), key)
			o.TaskBudget = budget.Total
			return
		}
		r.decode(n, v, key)
	case "managedSettings", "customContext", "modelRequestPatches":
		if n.kind == configNull || r.want(n, configObject, key) {
			r.decode(n, v, key)
		}
		if n.kind == configNull {
			v.SetZero()
		}
	case "outputFormat":
		if r.decode(n, v, key); o.OutputFormat != nil && len(o.OutputFormat.Schema) > 0 {
			r.want(n.under("schema"), configObject, "outputFormat.schema")
		}
	default:
		r.decode(n, v, key)
	}
}

// settings reads an object, a path, or JSON text.
func (r *configReader) settings(n *configNode, o *Options) {
	switch {
	case n.kind == configNull:
	case n.kind == configObject:
		o.Settings = r.raw(n, "settings")
	case n.kind == configText && strings.HasPrefix(strings.TrimSpace(n.text), "{"):
		if o.Settings = json.RawMessage(n.text); !json.Valid(o.Settings) {
			r.fail(n, "settings", "begins like JSON and is none", "give an object, or the path of a file")
		}
	case n.kind == configText:
		o.SettingsPath = n.text
	default:
		r.mismatch(n, "an object, or a text: the path of a file", "settings")
	}
}

// env reads the agent's variables; null takes one away.
func (r *configReader) env(n *configNode, o *Options) {
	if n.kind == configNull || !r.want(n, configObject, "env") {
		return
	}
	r.each(n, "env", func(key, value *configNode, at string) {
		if value.kind == configNull {
			r.unset = append(r.unset, key.text)
			return
		}
		var text string
		r.decode(value, reflect.ValueOf(&text).Elem(), at)
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[key.text] = text
	})
}
