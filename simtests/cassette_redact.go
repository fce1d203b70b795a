package simtests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/sdk"
)

// place is text of this machine and the name that a cassette has for it.
type place struct{ text, name string }

// redactor hides the secrets and the places of one agent.
type redactor struct {
	secrets []string
	places  []place
}

const secretName = `(?:token|secret|password|passwd|api_?key|authorization|credential|cookie|private_?key)`

var (
	secretVariable = regexp.MustCompile(`(?i)` + secretName)
	secretKey      = regexp.MustCompile(`(?i)("[\w.-]*` + secretName + `[\w.-]*"\s*:\s*)"(?:[^"\\]|\\.)+"`)
	secretObject   = regexp.MustCompile(`("(?:env|headers)"\s*:\s*)\{[^{}]*\}`)
	stringMember   = regexp.MustCompile(`(:\s*)"(?:[^"\\]|\\.)*"`)
	harmlessKey    = regexp.MustCompile(`(?i)^"[\w.-]*source"`)
	tokenLike      = regexp.MustCompile(`\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]+)|(?i:\bbearer\s+)[\w.~+/=-]{8,}`)
	mailAddress    = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
)

// newRedactor reads the environment, "KEY=value", and the directory of an agent.
func newRedactor(env []string, dir string, secrets []string) *redactor {
	r := &redactor{secrets: slices.Clone(secrets)}
	value := func(name string) string {
		for _, kv := range slices.Backward(env) {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
	for _, kv := range env {
		if name, v, _ := strings.Cut(kv, "="); secretVariable.MatchString(name) && len(v) >= 6 {
			r.secrets = append(r.secrets, v)
		}
	}
	home := value("HOME")
	if home == "" {
		home, _ = os.UserHomeDir() // "" names nothing
	}
	own, _ := os.UserHomeDir()
	host, _ := os.Hostname()
	r.place(getwd(dir), "cwd")
	r.place(home, "home")
	r.place(own, "home")
	r.place(strings.TrimSuffix(os.TempDir(), "/"), "tmp")
	r.place(host, "host")
	if user := value("USER"); user != "root" {
		r.place(user, "user")
	}
	// A directory in another one has its own name.
	slices.SortStableFunc(r.places, func(a, b place) int { return len(b.text) - len(a.text) })
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
	return r
}

func (r *redactor) place(text, name string) {
	if len(text) < 3 {
		return
	}
	r.places = append(r.places, place{text, "${" + name + "}"})
	if target, err := filepath.EvalSymlinks(text); err == nil && target != text {
		r.places = append(r.places, place{target, "${" + name + "}"})
	}
	if strings.Contains(text, "/") { // as agents name directories after it
		r.places = append(r.places, place{dashes(text), "${" + name + "-}"})
	}
}

func dashes(path string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, path)
}

// text hides what is in a text.
func (r *redactor) text(s string) string {
	for _, secret := range r.secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, sdk.Masked)
		}
	}
	s = secretKey.ReplaceAllStringFunc(s, func(m string) string {
		if harmlessKey.MatchString(m) {
			return m
		}
		return secretKey.ReplaceAllString(m, `${1}"`+sdk.Masked+`"`)
	})
	s = secretObject.ReplaceAllStringFunc(s, func(m string) string { return stringMember.ReplaceAllString(m, `${1}"`+sdk.Masked+`"`) })
	s = tokenLike.ReplaceAllString(s, sdk.Masked)
	s = mailAddress.ReplaceAllString(s, sdk.Masked)
	for _, p := range r.places {
		s = replaceWord(s, p.text, p.name)
	}
	return s
}

// json hides what is in a frame, which stays JSON.
func (r *redactor) json(line []byte) json.RawMessage {
	hidden := []byte(r.text(string(line)))
	if !json.Valid(hidden) { // a secret was part of the syntax
		hidden = []byte(`{"type":"redacted"}`)
	}
	return hidden
}

// expand puts the places of this agent where their names are.
func (r *redactor) expand(s string) string {
	for _, p := range slices.Backward(r.places) {
		s = strings.ReplaceAll(s, p.name, p.text)
	}
	return s
}

// replaceWord replaces a text where it is not part of a longer word.
func replaceWord(s, old, with string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, old)
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		end := i + len(old)
		if i > 0 && wordy(s[i-1]) && wordy(old[0]) || end < len(s) && wordy(s[end]) {
			out.WriteString(s[:end])
		} else {
			out.WriteString(s[:i] + with)
		}
		s = s[end:]
	}
}

func wordy(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
