package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

// read reads a file of tasks that has no mistake.
func readAll(t *testing.T, name, text, prompt string, sets ...string) []fleet.Task {
	t.Helper()
	tasks, _, err := readTasks(name, "", prompt, sets, strings.NewReader(text))
	require.NoError(t, err, text)
	return tasks
}

func prompts(tasks []fleet.Task) (all []string) {
	for _, t := range tasks {
		all = append(all, t.Prompt)
	}
	return all
}

// What a template prints is what the file has.
func TestValuesOfTemplates(t *testing.T) {
	t.Parallel()
	const issue = `{"number": 1234567, "title": "dates", "milestone": null, "node": 9007199254740993, "price": 1.50, "labels": ["bug", "ui"], "by": {"login": "a<b"}, "open": true}`
	const all = `#{{.number}} {{.title}} {{.node}} [{{.milestone}}] {{.price}} {{.labels}} {{.by}} {{.by.login}} {{range .labels}}{{.}};{{end}}{{if .open}}open{{end}}`
	const want = `#1234567 dates 9007199254740993 [] 1.50 ["bug","ui"] {"login":"a\u003cb"} a<b bug;ui;open`
	assert.Equal(t, []string{want}, prompts(readAll(t, "issues.jsonl", issue, all)))
	assert.Equal(t, []string{want}, prompts(readAll(t, "issues.json", "["+issue+"]", all)))
	assert.Equal(t, []string{"#1234567 20260131 1.50 12345678901 []"},
		prompts(readAll(t, "i.yaml", "- {number: 1234567, day: 20260131, price: 1.50, node: 12345678901, milestone: null}", "#{{.number}} {{.day}} {{.price}} {{.node}} [{{.milestone}}]")))
	assert.Equal(t, []string{"a [] 007"}, prompts(readAll(t, "i.csv", "t,empty,n\na,,007\n", "{{.t}} [{{.empty}}] {{.n}}")))
	tasks := readAll(t, "ids.jsonl", `{"id": 12345678901, "title": "x"}`, "{{.title}}")
	assert.Equal(t, "12345678901", tasks[0].ID)
}

// Nothing of a file is read over.
func TestTasksAreNotDropped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"t.yaml", "---\n- prompt: first\n---\n- prompt: second\n", "t.yaml:4:1: begins a second document; give one document"},
		{"t.csv", "id,prompt,prompt\n1,old,new\n", "t.csv:1:11: prompt names two columns; rename one of them"},
		{"t.jsonl", `{"prompt": "one", "prompt": "two"}`, "t.jsonl:1:19: prompt is a duplicate key"},
		{"t.yaml", "- prompt: one\n  prompt: two\n", "t.yaml:2:3: prompt is a duplicate key"},
		{"t.json", `{"tasks":[{"prompt":"a"}],"tasks":[]}`, "tasks is a duplicate key"},
		{"t.jsonl", `{"prompt":"a"} {"prompt":"b"}`, "t.jsonl:1:16: follows the object of the line; write each task on a line of its own"},
		{"t.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":\"caf\xe9\"}\n", "t.jsonl:2:15: is not UTF-8; save the file as UTF-8"},
		{"t.csv", "prompt\ncaf\xe9\n", "t.csv:2:4: is not UTF-8"},
		{"t.csv", "prompt,\na,b\n", "t.csv:2:3: is a cell of column 2, which has no name"},
		{"t.yaml", "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ntasks: *f\n", "has aliases that stand for more than"},
		{"t.yaml", "- &a\n  prompt: x\n  turns: [*a]\n", "which has no anchor before it"},
	} {
		_, _, err := readTasks(c.name, "", "", nil, strings.NewReader(c.text))
		assert.ErrorContains(t, err, c.want, c.text)
	}
	tasks := readAll(t, "t.yaml", "- &base\n  prompt: one\n  tags: &tags [a]\n- <<: *base\n  prompt: two\n- prompt: three\n  tags: *tags\n", "")
	assert.Equal(t, []string{"one", "two", "three"}, prompts(tasks))
	assert.Equal(t, []string{"a"}, tasks[1].Tags, "of the merge key")
	assert.Equal(t, []string{"a"}, tasks[2].Tags)
	var long strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&long, "- prompt: do %d\n", i)
	}
	assert.Len(t, readAll(t, "t.yaml", long.String(), ""), 20_000)
}

// Tools of Windows write byte order marks and UTF-16, spreadsheets semicolons and tabs.
func TestFormsOfTaskFiles(t *testing.T) {
	t.Parallel()
	utf16 := "\xff\xfe"
	for _, c := range "prompt\nprüfe\n" {
		utf16 += string([]byte{byte(c), byte(c >> 8)})
	}
	for _, c := range []struct{ name, text, want string }{
		{"t.jsonl", "\uFEFF{\"prompt\":\"hello\"}", "hello"},
		{"t.yaml", "\uFEFF- prompt: hello\n", "hello"},
		{"t.json", "\uFEFF[{\"prompt\":\"hello\"}]", "hello"},
		{"t.csv", utf16, "prüfe"},
		{"t.csv", "id;prompt\r\n1;fix it, and more\r\n", "fix it, and more"},
		{"t.csv", "sep=;\r\nid;prompt\r\n1;fix it\r\n", "fix it"},
		{"t.tsv", "id\tprompt\n1\tfix it\n", "fix it"},
		{"t.tsv", "title, long\tprompt\nx\tfix it\n", "fix it"},
		{"t.csv", "title, long;prompt\r\nx;fix it\r\n", "fix it"},
		{"t.csv", "\"title; long\",prompt\nx,fix it\n", "fix it"},
		{"t.csv", "title; long,prompt\nx,fix it; and more\n", "fix it; and more"},
		{"t.csv", "id,prompt\r1,fix it\r", "fix it"},
		{"t.csv", "id,prompt\n1,fix it\n,\n , \n,,,\n", "fix it"},
		{"t.jsonl", `{"id": 12, "prompt": "a"}`, "a"},
	} {
		template := ""
		if strings.Contains(c.text, "long") {
			template = "{{.prompt}}"
		}
		assert.Equal(t, []string{c.want}, prompts(readAll(t, c.name, c.text, template)), "%q", c.text)
	}
	assert.Equal(t, []string{"Fix 7 x", "Fix 8 "}, prompts(readAll(t, "t.csv", "n;t\n7;x\n8;\n;\n;\n", "Fix {{.n}} {{.t}}")), "rows without text are not tasks")
}

// Mistakes are told in terms of the file, all at once.
func TestMistakesInTaskFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"list.jsonl", "[\n  {\"prompt\": \"a\"}\n]\n", "list.jsonl:1:1: is no JSON object: this is a JSON list, which --format yaml reads"},
		{"t.jsonl", "- prompt: a\n", "this is YAML"},
		{"t.jsonl", "id,prompt\n1,a\n", "--format csv reads it"},
		{"t.txt", "fix the build\n", "this is plain text"},
		{"t.jsonl", `{"prompt": "a", "workspace": "worktree"}`, `t.jsonl:1:30: workspace is a text, and has to be an object; write {"kind": "worktree"}`},
		{"t.jsonl", `{"prompt": "a", "timeout": 600}`, `timeout is a number, and has to be a duration such as 90s; write "90s"`},
		{"t.jsonl", `{"prompt": "a", "timeout": "600"}`, `timeout is "600", and has to be a duration such as 90s`},
		{"t.jsonl", `{"prompt": "a", "budget": 5}`, `budget is a number, and has to be an object; write {"usd":5}`},
		{"t.jsonl", `{"prompt": "a", "tags": "x,y"}`, `tags is a text, and has to be a list; write ["a","b"]`},
		{"t.jsonl", `{"prompt": "a", "verify": "go test"}`, `verify is a text, and has to be an object; write {"command": "go test ./..."}`},
		{"t.jsonl", `{"prompt": "a", "model": "opus"}`, `model is not known; it is an option of the session: put it under "options"`},
		{"t.jsonl", `{"prompt": "a", "workspace": {"knd": "copy"}}`, "workspace.knd is not known; did you mean kind?"},
		{"t.jsonl", `{"prompt": "a", "workspace": {"kind": "wortree"}}`, "workspace.kind is not known; use copy or worktree"},
		{"t.jsonl", `{"prompt": "a", "notBefore": "2026-12-01"}`, "and has to be a time such as 2026-12-01T08:00:00Z"},
		{"t.yaml", "- fix it\n", "t.yaml:1:3: is a text, and has to be the object of a task; write prompt: before it"},
		{"t.yaml", "- prompt: 123\n", "t.yaml:1:11: prompt is a number, and has to be a text; put it in quotes"},
		{"t.csv", "id,prompt\n1,a,b\n", "t.csv:2: has 3 cells, and the first line names 2 columns"},
		{"t.csv", "id,prompt\n1,a \"b\" c\n", "t.csv:2:5: has a quote inside of a cell"},
		{"t.jsonl", "{\"promt\": \"a\"}\n{\"prompt\": \"b\", \"tags\": 1}\n{\"prompt\": \"c\",}\n", "t.jsonl:1:2: promt is not known; did you mean prompt?\nt.jsonl:2:25: tags is a number, and has to be a list; write [\"a\",\"b\"]\nt.jsonl:3:15: is a comma before '}'"},
	} {
		_, _, err := readTasks(c.name, "", "", nil, strings.NewReader(c.text))
		if assert.Error(t, err, c.text) {
			assert.Contains(t, strings.ReplaceAll(err.Error(), `":"`, `": "`), c.want, c.text)
		}
	}
}

// An unknown column is one mistake, not one of each row, and the error names --template.
func TestColumnsThatAreNoKeys(t *testing.T) {
	t.Parallel()
	_, _, err := readTasks("t.csv", "", "", nil, strings.NewReader("number,title,promt,priority\n7,one,x,1\n8,two,y,high\n"))
	assert.EqualError(t, err, strings.Join([]string{
		"t.csv:1:1: number is not known; leave it out, or make the prompt of columns with --template 'Fix {{.number}}'",
		`t.csv:1:8: title is not known; it is an option of the session: put it under "options", or make the prompt of columns with --template 'Fix {{.title}}'`,
		"t.csv:1:14: promt is not known; did you mean prompt?",
		`t.csv:3:9: priority is "high", and has to be what JSON has there: a number, true or false, or a value in brackets`,
	}, "\n"))
}

// A mistake that every row has is one line.
func TestMistakesOfManyRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, prompt, text, want string }{
		{"t.jsonl", "", strings.Repeat("{\"promt\": \"a\"}\n", 1000), "t.jsonl:1:2: promt is not known; did you mean prompt? (and 999 more times)"},
		{"t.csv", "Fix {{.isue}}", "issue\n1\n2\n", `t.csv:2:1: --template:1:6: executing "--template" at <.isue>: map has no entry for key "isue"; the row has issue (and 1 more time)`},
		{"t.csv", "{{.a}}", "a,tags\n1,x\n2,y\n3,z\n", "t.csv:2:3: tags is named like a key of a task, and --template makes the prompt alone; add --set tags='{{.tags}}' to set it, or --set tags= to ignore the column (and 2 more times)"},
	} {
		_, _, err := readTasks(c.name, "", c.prompt, nil, strings.NewReader(c.text))
		assert.EqualError(t, err, c.want)
	}
}

// Keys of tasks come from columns by --set, and never silently from nowhere.
func TestKeysFromColumns(t *testing.T) {
	t.Parallel()
	const rows = "repo,workspace,tags,limit,title\n/r/a,x,a b,5,one\n/r/b,y,,,two\n"
	_, _, err := readTasks("t.csv", "", "{{.title}}", nil, strings.NewReader(rows))
	assert.ErrorContains(t, err, "workspace is named like a key of a task, and --template makes the prompt alone; add --set workspace.from='{{.workspace}}' to set it, or --set workspace= to ignore the column")
	assert.ErrorContains(t, err, "add --set tags='{{.tags}}'")
	tasks := readAll(t, "t.csv", rows, "{{.title}}", "workspace.from={{.repo}}", "workspace.kind=worktree", "tags={{.tags}}", "budget={{.limit}}", "timeout=5m", "verify=make {{.title}}", "priority=3")
	require.Len(t, tasks, 2)
	assert.Equal(t, &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: "/r/a"}, tasks[0].Workspace)
	assert.Equal(t, []string{"a", "b"}, tasks[0].Tags)
	assert.InDelta(t, 5, tasks[0].Budget.USD, 0)
	assert.Equal(t, "make one", tasks[0].Verify.Command)
	assert.Equal(t, "5m0s", tasks[0].Timeout.String())
	assert.Equal(t, 3, tasks[0].Priority)
	assert.Nil(t, tasks[1].Budget, "an empty cell leaves it to the job")
	assert.Empty(t, readAll(t, "t.csv", rows, "{{.title}}", "workspace=", "tags=")[0].Tags)
	assert.Equal(t, []string{"one a b", "two "}, prompts(readAll(t, "t.csv", rows, "{{.title}} {{.tags}}", "workspace=")), "a column that the template uses")
	for set, want := range map[string]string{
		"workspce.from={{.repo}}": "did you mean workspace.from?", "tags": "is not KEY=TEMPLATE", "prompt=x": "a task has no key", "timeout={{.title}}": "and has to be a duration",
		"budget={{.title}}": "budget.usd is \"one\"",
	} {
		_, _, err := readTasks("t.csv", "", "{{.title}}", []string{set, "workspace=", "tags="}, strings.NewReader(rows))
		if assert.Error(t, err, set) {
			assert.Contains(t, fmt.Sprint(err), strings.TrimSuffix(want, ""), set)
		}
	}
	_, _, err = readTasks("t.csv", "", "", []string{"tags=x"}, strings.NewReader(rows))
	assert.ErrorContains(t, err, "--set is for --template")
}

// Each mistake has its place in the file, those that need the other tasks or the job, too.
func TestPlacesOfMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, want string }{
		"at once": {
			"t.yaml", "- promt: x\n- {id: a, prompt: \"\"}\n- id: b\n  prompt: x\n  options: {maxTurns: many}\n- {id: a, prompt: y}\n",
			"1:3: promt is not known; did you mean prompt?\nAT:2:3: task 2 (a): prompt number 1 is empty\nAT:3:3: task 3 (b): options maxTurns is a text, and has to be a whole number\nAT:6:3: task 4 (a): id is that of task 2, too",
		},
		"the same id": {"t.yaml", "- {id: a, prompt: x}\n- {id: a, prompt: y}\n", "2:3: task 2 (a): id is that of task 1, too"},
		"a circle":    {"t.jsonl", "{\"id\":\"a\",\"prompt\":\"x\",\"after\":[\"b\"]}\n\n{\"id\":\"b\",\"prompt\":\"x\",\"after\":[\"a\"]}\n", "1:1: task 1 (a): after leads back to the task itself\nAT:3:1: task 2 (b): after leads"},
		"rows":        {"t.csv", "id,prompt,after\na,\"two\nlines\",\nb,x,c\n", "4:1: task 2 (b): after names the task \"c\", which does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := newWorld(), taskFile(t, c.file, c.text)
			assert.Equal(t, exitUsage, w.run("batch", file, "-a", "scripted", "--dry-run", "-q"))
			assert.Contains(t, strings.ReplaceAll(strings.ReplaceAll(w.err.String(), "\n        ", "\n"), file, "AT"), "troupe: AT:"+c.want)
		})
	}
}
