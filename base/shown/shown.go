package shown

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

const hidden = "(hidden)"

// shownField reports whether the text of a field may be seen. Each name here is a
// decision; a new field is hidden.
func shownField(name string) bool {
	switch name {
	case "Type", "Command", "Name", "Status", "Source", "Server", "Cwd", "PathToExecutable", "Model", "FallbackModel", "Effort", "Agent",
		"PermissionMode", "PermissionPrompts", "SessionID", "Resume", "SettingSources",
		"PluginDelivery", "MCPServersDelivery":
		return true
	}
	return false
}

// Struct returns the text by which a struct is printed and logged: the names of all fields that are not zero, with the values
// of numbers and booleans, and of the few texts that hold no secrets, such as Cwd
// and Model. Of a URL the scheme and the host are left. v is a struct; of
// anything else only its type is shown.
func Struct(v any) string {
	s := reflect.ValueOf(v)
	if s.Kind() != reflect.Struct {
		return fmt.Sprintf("%T%s", v, hidden)
	}
	var b strings.Builder
	b.WriteString(s.Type().String())
	b.WriteByte('{')
	first := true
	for i := range s.NumField() {
		f := s.Type().Field(i)
		if !f.IsExported() || s.Field(i).IsZero() {
			continue
		}
		if !first {
			b.WriteByte(' ')
		}
		first = false
		b.WriteString(f.Name)
		b.WriteByte(':')
		b.WriteString(shownValue(f.Name, s.Field(i)))
	}
	b.WriteByte('}')
	return b.String()
}

func shownValue(name string, v reflect.Value) string {
	switch x := v.Interface().(type) { // optional numbers and switches
	case interface{ Value() (int, bool) }:
		return fmt.Sprint(x)
	case interface{ Value() (float64, bool) }:
		return fmt.Sprint(x)
	case interface{ Value() (bool, bool) }:
		return fmt.Sprint(x)
	case json.RawMessage:
		return hidden
	}
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return fmt.Sprint(v.Interface())
	case reflect.Map, reflect.Slice:
		return fmt.Sprintf("(%d hidden)", v.Len())
	case reflect.String:
		if name == "URL" {
			return shownURL(v.String())
		}
		if shownField(name) {
			return shownText(v.String())
		}
	case reflect.Struct:
		if text, ok := v.Interface().(fmt.Stringer); ok && shownField(name) {
			return shownText(text.String())
		}
	}
	return hidden
}

// shownText hides what a harmless field should not hold: a URL, which may have a login,
// characters that control a terminal, and long text.
func shownText(s string) string {
	const most = 200
	if len(s) > most || strings.Contains(s, "://") || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return hidden
	}
	if s == "" || strings.ContainsAny(s, " {}:") {
		return strconv.Quote(s)
	}
	return s
}

// shownURL is the scheme and the host: paths of MCP servers hold tokens, too.
func shownURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return hidden
	}
	shown := u.Scheme + "://" + u.Host
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		shown += "/" + hidden
	}
	return shown
}

// Print writes text, the form of a value that hides its secrets, for every
// verb of package fmt.
func Print(f fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = f.Write([]byte(text)) // package fmt's own buffer
}
