package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// masked stands for a value that may be a secret. It does not say how long the value is.
const masked = "•••• set"

// shownOption reports whether the texts under this name may be seen. Each name is a decision: the
// texts of all others are masked.
func shownOption(name string) bool {
	switch name {
	case "cwd", "isolation", "model", "fallbackModel", "effort", "agent", "title", "permissionMode", "permissionPrompts", "permissionPromptToolName",
		"allowedTools", "disallowedTools", "tools", "toolAliases", "skills", "betas", "settingSources", "additionalDirectories", "directories",
		"allow", "ask", "deny", "default", "root", "home", "pathToExecutable", "executable", "command", "type", "name", "unsetEnv", "recovery",
		"sessionId", "resume", "resumeSessionAt", "resumeDropsTurn", "allowedMcpServerNames", "supportedDialogKinds", "projectConfigRoot",
		"settingsPath", "mcpConfigPath", "debugFile", "pluginDelivery", "mcpServersDelivery":
		return true
	}
	return false
}

// Options returns the options of the session as they are in force, for people, by their names in
// option files: those that are set, with Policy, Limits and Graces. Numbers, switches and the few
// texts that hold no secrets, such as cwd, model and rules, are shown. All others, such as the
// values of environment variables, headers and prompts, are the text "•••• set". Functions, and
// values of the user's types, are "set".
func (s *Session) Options() map[string]any {
	in := s.core.Options()
	in.Limits = s.core.User.Limits()
	all, _ := shownValue("", reflect.ValueOf(in)).(map[string]any)
	return all
}

// shownValue is a value without its secrets; nil if there is nothing to show.
func shownValue(name string, v reflect.Value) any {
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case json.RawMessage:
		return masked
	case interface{ Value() (bool, bool) }:
		on, _ := x.Value()
		return on
	case interface{ Value() (int, bool) }:
		n, _ := x.Value()
		return n
	case interface{ Value() (float64, bool) }:
		n, _ := x.Value()
		return n
	case interface{ Value() (string, bool) }:
		text, _ := x.Value()
		return shownText(name, text)
	}
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return v.Interface()
	case reflect.String:
		return shownText(name, v.String())
	case reflect.Interface:
		if k := v.Elem().Kind(); k == reflect.Pointer || k == reflect.Struct || k == reflect.Func {
			return "set" // a value of the user's, which may lead anywhere
		}
		return shownValue(name, v.Elem())
	case reflect.Pointer:
		return shownValue(name, v.Elem())
	case reflect.Slice, reflect.Array:
		return shownList(name, v)
	case reflect.Map:
		return shownMap(name, v)
	case reflect.Struct:
		return shownFields(v)
	case reflect.Func, reflect.Chan:
		return "set"
	default:
		return masked
	}
}

func shownList(name string, v reflect.Value) any {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return masked
	}
	all := make([]any, 0, v.Len())
	for i := range v.Len() {
		if x := shownValue(name, v.Index(i)); x != nil {
			all = append(all, x)
		}
	}
	return all
}

func shownMap(name string, v reflect.Value) any {
	all := make(map[string]any, v.Len())
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	of := name
	if !shownOption(name) {
		of = "" // the keys are names that the user has chosen, and vouch for nothing
	}
	for _, k := range keys {
		x := shownValue(of, v.MapIndex(k))
		if x == nil {
			x = masked // it is empty, which is not shown
		}
		all[fmt.Sprint(k)] = x
	}
	return all
}

func shownFields(v reflect.Value) any {
	all := map[string]any{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
			continue
		case f.Anonymous && tag == "":
			if inner, ok := shownValue("", v.Field(i)).(map[string]any); ok {
				maps.Copy(all, inner)
			}
			continue
		case tag == "" || tag == "-":
			tag = strings.ToLower(f.Name[:1]) + f.Name[1:]
		}
		if x := shownValue(tag, v.Field(i)); x != nil {
			all[tag] = x
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func shownText(name, text string) any {
	switch {
	case name == "url":
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return masked
		}
		return u.Scheme + "://" + u.Host // paths of MCP servers hold tokens, too
	case !shownOption(name) || strings.Contains(text, "://"):
		return masked
	}
	return text
}
