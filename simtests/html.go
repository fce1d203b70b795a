package simtests

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"github.com/agent-troupe/troupe/internal/pages"
)

// timelinePage shows a trace. It loads nothing: its policy forbids the browser to.
//
//go:embed timeline.html
var timelinePage string

// timeline is the page of a history. The template escapes what agents and models
// wrote, and the page shows it as text.
func timeline(test string, h history, o outcome) ([]byte, error) {
	page, err := template.New("timeline.html").Parse(timelinePage)
	if err != nil {
		return nil, fmt.Errorf("the template: %w", err)
	}
	var b bytes.Buffer
	style, life := pages.Life()
	err = page.Execute(&b, struct {
		Style             template.CSS `json:"-"`
		Life              template.JS  `json:"-"`
		Test, Token, Hash string
		Steps             int
		Unseeded          bool
		Failures, Faults  []string
		Events            []Event
	}{template.CSS(style), template.JS(life), test, //nolint:gosec // both are files of package pages
		h.token(), o.hash, o.steps, o.unseeded, o.failures, o.fired, o.events})
	if err != nil {
		return nil, fmt.Errorf("the template: %w", err)
	}
	return b.Bytes(), nil
}
