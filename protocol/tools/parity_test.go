package tools

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
)

// TestEveryTool takes a call of each tool through its types: every member has a field,
// and comes out as it went in. TestObservedOutputs and TestEveryRecordedCallDecodes
// have the observed behaviour of the tools.
func TestEveryTool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, in, out string }{
		{"both/tool/Agent", `{"description":"d","prompt":"p","subagent_type":"t","run_in_background":false,"model":"opus","effort":"high","name":"n","mode":"plan","isolation":"worktree"}`,
			`{"status":"completed","agentId":"a","agentType":"t","content":[{"type":"text","text":"x"}],"totalDurationMs":5,"totalTokens":6,"totalToolUseCount":7,"toolStats":{"readCount":1},"toolsUsed":["Read"],"prompt":"p","resolvedModel":"m"}`},
		{"both/tool/TaskOutput", `{"task_id":"t","block":true,"timeout":5}`, `{"retrieval_status":"timeout","task":{"task_id":"t","task_type":"local_agent","status":"running","description":"d","output":"o","prompt":"p","result":"r","error":"e"}}`},
		{"both/tool/TaskStop", `{"task_id":"t"}`, `{"message":"m","task_id":"t","task_type":"local_bash","command":"c"}`},
		{"both/tool/Bash", `{"command":"c","timeout":5,"description":"d","run_in_background":true,"dangerouslyDisableSandbox":true}`,
			`{"stdout":"o","stderr":"e","interrupted":true,"isImage":true,"backgroundTaskId":"b","returnCodeInterpretation":"r","persistedOutputPath":"p","persistedOutputSize":3,"gitOperation":{"pr":{"number":4,"action":"created"},"push":{"branch":"b"},"branch":{"ref":"r","action":"merged"}}}`},
		{"both/tool/Read", `{"file_path":"f","offset":2,"limit":3,"pages":"1-2","allow_large":true}`,
			`{"type":"pdf","file":{"filePath":"f","base64":"b","originalSize":4},"artifactRead":{"slug":"s","ver":"v"}}`},
		{"both/tool/Write", `{"file_path":"f","content":"c"}`, `{"type":"update","filePath":"f","content":"c","structuredPatch":[{"oldStart":1,"oldLines":2,"newStart":3,"newLines":4,"lines":["-a"]}],"originalFile":"o","gitDiff":{"filename":"f","status":"modified","additions":1,"deletions":2,"changes":3,"patch":"p","repository":"r"}}`},
		{"both/tool/Edit", `{"file_path":"f","old_string":"o","new_string":"n","replace_all":true}`, `{"filePath":"f","oldString":"o","newString":"n","originalFile":"x","structuredPatch":[],"userModified":true,"replaceAll":true}`},
		{"both/tool/Glob", `{"pattern":"*","path":"p"}`, `{"durationMs":1,"numFiles":1,"filenames":["f"],"truncated":true,"totalMatches":2,"countIsComplete":true,"timedOut":true}`},
		{"both/tool/Grep", `{"pattern":"p","path":"p","glob":"g","type":"go","output_mode":"content","-A":1,"-B":2,"-C":3,"context":4,"-n":false,"-i":true,"-o":true,"multiline":true,"head_limit":0,"offset":5}`,
			`{"mode":"count","numFiles":1,"filenames":["f"],"content":"c","numLines":2,"numMatches":3,"totalFiles":4,"totalLines":5,"appliedLimit":6,"appliedOffset":7}`},
		{"both/tool/NotebookEdit", `{"notebook_path":"n","cell_id":"c","new_source":"s","cell_type":"code","edit_mode":"insert"}`, `{"new_source":"n","old_source":"o","cell_id":"c","cell_type":"code","language":"python","edit_mode":"replace","error":"e","notebook_path":"p","original_file":"o","updated_file":"u"}`},
		{"both/tool/WebFetch", `{"url":"u","prompt":"p","offset":3}`, `{"bytes":1,"code":200,"codeText":"OK","result":"r","durationMs":2,"url":"u"}`},
		{"both/tool/WebSearch", `{"query":"q","allowed_domains":["a"],"blocked_domains":["b"]}`, `{"query":"q","results":["a",{"tool_use_id":"i","content":[{"title":"t","url":"u","snippet":"s"}]}],"durationSeconds":1.5,"searchCount":1}`},
		{"both/tool/TodoWrite", `{"todos":[{"content":"c","status":"pending","activeForm":"a"}]}`, `{"oldTodos":[{"content":"c","status":"pending","activeForm":"a"}],"newTodos":[{"content":"c","status":"completed","activeForm":"a"}]}`},
		{"both/tool/ExitPlanMode", `{"allowedPrompts":[{"tool":"Bash","prompt":"run tests"}],"plan":"p"}`, `{"plan":"p","isAgent":true,"filePath":"f","hasTaskTool":true,"planWasEdited":true,"awaitingLeaderApproval":true,"requestId":"r"}`},
		{"both/tool/AskUserQuestion", `{"questions":[{"question":"q","header":"h","options":[{"label":"l","description":"d","preview":"p"}],"multiSelect":true}],"answers":{"q":"l"},"annotations":{"q":{"preview":"p","notes":"n"}},"metadata":{"source":"s"}}`,
			`{"questions":[{"question":"q","header":"h","options":[{"label":"l","description":"d"}]}],"answers":{"q":"l"},"response":"r","annotations":{"q":{"unanswered":"skipped"}},"afkTimeoutMs":5}`},
		{"both/tool/Config", `{"setting":"s","value":true}`, `{"success":true,"operation":"set","setting":"s","previousValue":1,"newValue":2}`},
		{"both/tool/ListMcpResources", `{"server":"s"}`, `[{"uri":"u","name":"n","mimeType":"m","description":"d","server":"s"}]`},
		{"both/tool/ReadMcpResource", `{"server":"s","uri":"u"}`, `{"contents":[{"uri":"u","mimeType":"m","text":"t","blobSavedTo":"b"}],"error":"e"}`},
		{"both/tool/mcp__server__tool", `{"any":[1]}`, `[{"type":"text","text":"t"}]`},
		{"both/tool/Skill", `{"skill":"s","args":"a"}`, `{"success":true,"commandName":"c","allowedTools":["Read"],"model":"m","status":"inline"}`},
		{"both/tool/TaskCreate", `{"subject":"s","description":"d","activeForm":"a","metadata":{"k":1}}`, `{"task":{"id":"1","subject":"s","description":"d"}}`},
		{"both/tool/TaskGet", `{"taskId":"1"}`, `{"task":{"id":"1","subject":"s","description":"d","status":"pending","blocks":["2"],"blockedBy":["3"]}}`},
		{"both/tool/TaskList", `{}`, `{"tasks":[{"id":"1","subject":"s","status":"pending","owner":"o","blockedBy":["2"]}]}`},
		{"both/tool/TaskUpdate", `{"taskId":"1","subject":"s","description":"d","activeForm":"a","status":"deleted","addBlocks":["2"],"addBlockedBy":["3"],"owner":"o","metadata":{"k":1}}`, `{"success":true,"taskId":"1","updatedFields":["status"],"error":"e","statusChange":{"from":"a","to":"b"}}`},
		{"both/tool/EnterWorktree", `{"name":"n","path":"p"}`, `{"worktreePath":"w","worktreeBranch":"b","message":"m"}`},
		{"both/tool/ExitWorktree", `{"action":"remove","discard_changes":true}`, `{"action":"remove","originalCwd":"o","worktreePath":"w","worktreeBranch":"b","tmuxSessionName":"t","discardedFiles":1,"discardedCommits":2,"message":"m","restoredCwd":"r","originalCwdMissing":true}`},
		{"claude/tool/EnterPlanMode", `{}`, `{"message":"m"}`},
		{"claude/tool/StructuredOutput", `{"answer":"42"}`, ``},
		{"claude/tool/CronCreate", `{"cron":"c","prompt":"p","recurring":false,"durable":true}`, `{"id":"i","humanSchedule":"h","recurring":true,"durable":true,"nextFireAt":5,"otherOneShots":[{"id":"i","humanSchedule":"h","prompt":"p"}]}`},
		{"claude/tool/CronDelete", `{"id":"i"}`, `{"id":"i","endedLoopWakeup":true}`},
		{"claude/tool/CronList", `{}`, `{"jobs":[{"id":"i","cron":"c","humanSchedule":"h","prompt":"p"}]}`},
		{"claude/tool/ListAgents", `{"channel":"c","q":"q","cursor":"x"}`, `{"listing":"l","sections":[1],"notes":[2]}`},
		{"claude/tool/Monitor", `{"description":"d","timeout_ms":5,"command":"c","ws":{"url":"u","protocols":["p"]}}`, `{"taskId":"t","timeoutMs":5,"persistent":true,"keptInSandboxByCheck":true}`},
		{"claude/tool/ReportFindings", `{"level":"low","findings":[{"file":"f","line":1,"summary":"s","short_summary":"t","failure_scenario":"x","category":"c","severity":"nit","verdict":"CONFIRMED","outcome":"fixed"}]}`, `{"count":1,"level":"low","findings":[{"file":"f","summary":"s","failure_scenario":"x"}]}`},
		{"claude/tool/ScheduleWakeup", `{"delaySeconds":5,"reason":"r","prompt":"p","stop":true,"noop":true}`, `{"scheduledFor":5,"clampedDelaySeconds":6,"wasClamped":true,"stopped":true,"cancelledWakeups":1}`},
		{"claude/tool/SendMessage", `{"to":"t","summary":"s","message":"m","notify_when_idle":true}`, `{"success":true,"message":"m","display":"d"}`},
		{"claude/tool/ToolSearch", `{"query":"q","max_results":2}`, `{"matches":["m"],"query":"q","total_deferred_tools":3}`},
		{"claude/tool/Workflow", `{"script":"s","name":"n","description":"d","title":"t","args":{"a":1},"scriptPath":"p","resumeFromRunId":"r"}`, `{"status":"async_launched","taskId":"t","taskType":"local_workflow","workflowName":"w","runId":"r","summary":"s","transcriptDir":"d","scriptPath":"p","sessionUrl":"u","warning":"w","error":"e"}`},
		{"claude/tool/ProposeGoal", `{"condition":"c","ask_user":true}`, `{"condition":"c","askUser":true}`},
		{"claude/tool/ProposeSkills", `{"proposals":[{"name":"n","kind":"new","target":"t","description":"d","evidence":["e"],"edits":[{"old_string":"o","new_string":"n"}],"skillMd":"s"}]}`, `{"proposalCount":1}`},
		{"claude/tool/PushNotification", `{"message":"m","status":"proactive"}`, `{"message":"m","pushSent":true,"localSent":true,"disabledReason":"config_off","sentAt":"s"}`},
		{"claude/tool/ReadMcpResourceDir", `{"server":"s","uri":"u"}`, `{"resources":[{"uri":"u","name":"n","mimeType":"m"}],"error":"e"}`},
		{"claude/tool/RefreshMcpTools", `{"server":"s"}`, `[{"server":"s","status":"refreshed","toolCount":1,"added":["a"],"removed":["r"],"error":"e"}]`},
		{"claude/tool/SendFeedback", `{"type":"idea","title":"t","details":"d","area":"a","failure_mode":"other","task_category":"plan"}`, `{"success":true,"message":"m"}`},
		{"qoder/tool/Mcp", `{"server_name":"s","tool_name":"t","arguments":{"a":1}}`, `{"content":"c","isError":true}`},
		{"qoder/tool/ImageGen", `{"name":"n","prompt":"p","size":"1024x1024"}`, `{"filePath":"f","requestId":"r"}`},
		{"qoder/tool/ImageSearch", `{"query":"q","count":3}`, `{"query":"q","results":[],"durationSeconds":1.5,"requestId":"r"}`},
		{"qoder/tool/UpdateGoal", `{"status":"complete"}`, ``},
		{"qoder/tool/CreateGoal", `{"objective":"o","max_turns":3}`, ``},
		{"qoder/tool/GetGoal", `{}`, ``},
		{"qoder/tool/VideoGen", `{"name":"n","mode":"m","prompt":"p","media":{"references":[{"source":"s","type":"image"}]},"size":"720P","duration_seconds":4}`, `{"taskId":"t","status":"s","requestId":"r","filePath":"f"}`},
		{"qoder/tool/VideoGenRetrieve", `{"video_id":"v"}`, `{"taskId":"t","status":"s","requestId":"r"}`},
	} {
		name := c.id[strings.LastIndex(c.id, "/")+1:]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, c.id)
			in, err := DecodeInput(name, raw(c.in))
			require.NoError(t, err)
			require.IsNotType(t, &UnknownInput{}, in)
			checkInput(t, c.id, name, raw(c.in))
			if c.out != "" {
				assert.True(t, checkOutput(t, c.id, name, raw(c.out)))
			}
		})
	}
}
