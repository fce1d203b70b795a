package model

import (
	"fmt"
	"net/url"
	"strings"
)

// Ref names a model and its endpoint, as a user writes it:
//
//	anthropic/NAME                    the vendor's endpoint of the Messages API
//	openai/NAME                       the vendor's endpoint of chat completions
//	http://HOST:PORT/v1#NAME          any endpoint of chat completions
//	anthropic+http://HOST/v1#NAME     any endpoint of the Messages API
type Ref struct {
	API   string // "anthropic" or "openai"
	URL   string // without a slash at its end
	Model string
}

// RefError says why a text names no model. Match it with errors.As.
type RefError struct {
	Ref     string // without a password
	Problem string
}

// Error says what was found and what is expected.
func (e *RefError) Error() string {
	return fmt.Sprintf("model %q: %s; write anthropic/NAME, openai/NAME, or the URL of an endpoint with the model after a #, as in http://localhost:11434/v1#NAME", e.Ref, e.Problem)
}

// ParseRef reads a name. The error is a [*RefError].
func ParseRef(s string) (Ref, error) {
	bad := func(problem string) (Ref, error) {
		return Ref{}, &RefError{Ref: redacted(s), Problem: problem}
	}
	if !strings.Contains(s, "://") {
		api, name, found := strings.Cut(s, "/")
		switch {
		case s == "":
			return bad("it is empty")
		case !found:
			return bad("it has no provider")
		case name == "":
			return bad("it has no name")
		case api == anthropic:
			return Ref{API: anthropic, URL: AnthropicURL, Model: name}, nil
		case api == openai:
			return Ref{API: openai, URL: OpenAIURL, Model: name}, nil
		}
		return bad(fmt.Sprintf("no provider is called %q", redacted(api)))
	}
	r := Ref{API: openai}
	rest := s
	if after, ok := strings.CutPrefix(s, anthropic+"+"); ok {
		r.API, rest = anthropic, after
	} else if after, ok := strings.CutPrefix(s, openai+"+"); ok {
		rest = after
	}
	u, err := url.Parse(rest)
	switch {
	case err != nil:
		return bad("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad(fmt.Sprintf("its scheme is %q, not http or https", u.Scheme))
	case u.Host == "":
		return bad("its URL has no host")
	case u.User != nil:
		return bad("its URL has a name or a password, which would be in logs: give the key apart")
	case u.Fragment == "":
		return bad("no model is named after a #")
	}
	r.Model = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	r.URL = strings.TrimRight(u.String(), "/")
	for _, path := range []string{"/chat/completions", "/messages"} {
		r.URL = strings.TrimSuffix(r.URL, path)
	}
	return r, nil
}

// redacted is s without a password.
func redacted(s string) string {
	head, _, found := strings.Cut(s, "://")
	switch u, err := url.Parse(s); {
	case !found && strings.Contains(s, "@"): // the scheme was forgotten
		return "…"
	case !found:
		return s
	case err != nil || u.Opaque != "":
		return head + "://…"
	default:
		return u.Redacted()
	}
}

// String is the name that [ParseRef] reads.
func (r Ref) String() string {
	switch {
	case r.API == anthropic && r.URL == AnthropicURL:
		return anthropic + "/" + r.Model
	case r.API == openai && r.URL == OpenAIURL:
		return openai + "/" + r.Model
	case r.API == anthropic:
		return anthropic + "+" + r.URL + "#" + r.Model
	}
	return r.URL + "#" + r.Model
}

// Open returns a client for the endpoint of ref, with the quirks that the profiles know of
// its server; nil profiles: the built-in ones. c.URL is not used.
func Open(ref Ref, c Config, p *Profiles) *Client {
	if p == nil {
		p = DefaultProfiles()
	}
	c.URL = ref.URL
	if ref.API == anthropic {
		return NewAnthropic(AnthropicConfig{Config: c})
	}
	return NewOpenAI(OpenAIConfig{Config: c, Quirks: p.Server(ref.URL).Quirks})
}
