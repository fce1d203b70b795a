package fleet

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// ReportFile is the report for people in Job.Out: one HTML file that needs no network.
// What agents wrote is text in it, and a Content-Security-Policy allows the report's own
// script alone.
const ReportFile = "report.html"

//go:embed report/report.html.tmpl
var reportTemplate string

//go:embed report/report.css
var reportStyle string

//go:embed report/report.js
var reportScript string

// Bounds of what is inside the report. The rest is in the files beside it.
const (
	maxTranscript  = 256 << 10 // of each transcript: its head and its tail
	maxTranscripts = 64 << 20  // of all, packed
	maxShownText   = 32 << 10
)

type reportPage struct {
	CSP      string
	CSS      template.CSS
	JS       template.JS
	Summary  Summary
	Took     string
	Starved  string // "": the machine was not
	Cost     string
	Tokens   string
	Cached   string
	Families []familyCount
	Charts   []chart
	Statuses []Status
	Rows     []reportRow
	Packs    []pack
}

type familyCount struct {
	Name  Family
	Title string
	Count int
}

type reportRow struct {
	ID, Words, Time, Cost, Short, Error, Verdict, Text, Diff, Pack, File string

	Status        Status
	Family        Family
	Tries, Denied int
}

// pack is a transcript, as gzip in base64.
type pack struct{ ID, Data string }

// report writes report.html.
func (r *run) report(s Summary) error {
	t, err := template.New("report").Parse(reportTemplate)
	if err != nil {
		return err
	}
	page := r.page(s)
	return journal.WriteFile(r.fs, ReportFile, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10) // a template writes piece by piece
		return errors.Join(t.Execute(b, page), b.Flush())
	})
}

func (r *run) page(s Summary) *reportPage {
	sum := sha256.Sum256([]byte(reportScript))
	page := &reportPage{
		CSP: "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src 'sha256-" +
			base64.StdEncoding.EncodeToString(sum[:]) + "'",
		CSS: template.CSS(reportStyle), JS: template.JS(reportScript), //nolint:gosec // the report's own
		Summary: s, Took: rounded(s.Ended.Sub(s.Started)), Cost: cost(s.Usage),
	}
	if s.Starved > 0 {
		page.Starved = fmt.Sprintf("the machine had too little processor time for %s (%.0f %%)",
			rounded(time.Duration(s.Starved)), 100*time.Duration(s.Starved).Seconds()/max(s.Ended.Sub(s.Started).Seconds(), 1e-3))
	}
	k := s.Usage.Tokens
	page.Tokens, page.Cached = thousands(k.Input+k.Output+k.CacheWrite+k.CacheRead), thousands(k.CacheRead)
	for _, f := range []familyCount{
		{FamilyAgent, "not accepted", 0}, {FamilyLimit, "at a limit", 0},
		{FamilyInfrastructure, "infrastructure", 0}, {FamilyNotRun, "skipped", 0},
	} {
		if f.Count = s.ByFamily[f.Name]; f.Count > 0 {
			page.Families = append(page.Families, f)
		}
	}
	r.mu.Lock()
	var all []*TaskResult
	for _, e := range r.order {
		if e.result != nil {
			all = append(all, e.result)
		}
	}
	r.mu.Unlock()
	hide := r.redactor()
	packed, z := 0, gzip.NewWriter(nil)
	for i, t := range all {
		row := rowOf(t, hide)
		if t.Transcript != "" {
			row.File = t.Transcript
			if data := r.packed(t, hide, z); data != "" && packed+len(data) <= maxTranscripts {
				packed += len(data)
				row.Pack = fmt.Sprint("transcript-", i)
				page.Packs = append(page.Packs, pack{row.Pack, data})
			}
		}
		if t.Diff != "" {
			row.Diff = hide.Replace(clip(r.content(t, t.Diff), maxShownText))
		}
		page.Rows = append(page.Rows, row)
		if !slices.Contains(page.Statuses, t.Status) {
			page.Statuses = append(page.Statuses, t.Status)
		}
	}
	slices.Sort(page.Statuses)
	page.Charts = charts(all)
	return page
}

func rowOf(t *TaskResult, hide *strings.Replacer) reportRow {
	row := reportRow{
		ID: t.ID, Status: t.Status, Family: t.Family, Time: rounded(time.Duration(t.Usage.Wall)), Cost: cost(t.Usage),
		Tries: len(t.Attempts), Denied: t.Denied, Text: hide.Replace(clip(t.Text, maxShownText)), Error: hide.Replace(clip(t.Error, maxShownText)),
	}
	if row.Text == "" && len(t.Structured) > 0 {
		row.Text = hide.Replace(clip(string(t.Structured), maxShownText))
	}
	row.Short = clip(strings.Join(strings.Fields(row.Text), " "), 200)
	if row.Error != "" {
		row.Short = clip(strings.Join(strings.Fields(row.Error), " "), 200)
	}
	if t.Verdict != nil {
		row.Verdict = hide.Replace(clip(t.Verdict.Output, maxShownText))
	}
	row.Words = strings.Join(append([]string{t.ID, string(t.Status), t.Class, row.Short}, t.Tags...), " ")
	return row
}

// content is that of a file that a result names; "" if it cannot be read.
func (r *run) content(t *TaskResult, name string) string {
	f, err := r.get(r.hard, t, name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 16<<20))
	if err != nil {
		return ""
	}
	return string(text)
}

// packed is a transcript for the report: its head and its tail, in whole lines.
func (r *run) packed(t *TaskResult, hide *strings.Replacer, z *gzip.Writer) string {
	text := r.content(t, t.Transcript)
	if len(text) > maxTranscript {
		head, tail := text[:maxTranscript/2], text[len(text)-maxTranscript/2:]
		head = head[:strings.LastIndexByte(head, '\n')+1]
		tail = tail[strings.IndexByte(tail, '\n')+1:]
		text = fmt.Sprintf("%s{\"type\":\"cut\",\"bytes\":%d}\n%s", head, len(text)-len(head)-len(tail), tail)
	}
	if text == "" {
		return ""
	}
	var b bytes.Buffer
	z.Reset(&b)
	_, _ = io.WriteString(z, hide.Replace(text)) // to memory
	_ = z.Close()
	return base64.RawURLEncoding.EncodeToString(b.Bytes()) // no character that HTML would escape
}

// redactor replaces the values of variables whose names say that they are secret.
func (r *run) redactor() *strings.Replacer {
	var pairs []string
	add := func(name, value string) {
		const least = 8 // shorter ones stand in texts by chance
		name = strings.ToUpper(name)
		for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH"} {
			if strings.Contains(name, word) && len(value) >= least {
				pairs = append(pairs, value, "[redacted]")
				return
			}
		}
	}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		add(name, value)
	}
	env := make([]string, 0, len(r.job.Options.Env))
	for name, value := range r.job.Options.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		add(name, value)
	}
	return strings.NewReplacer(pairs...)
}

// clip is the beginning of a text.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func cost(u Usage) string {
	if u.Credits > 0 {
		return fmt.Sprintf("%.2f credits", u.Credits)
	}
	return fmt.Sprintf("$%.2f", u.USD)
}

func thousands(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func rounded(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
