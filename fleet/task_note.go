package fleet

// TaskNote is what the program that has the lease of a task leaves for others, in JSON, as the note
// of Job.Queue: before each start, after each turn, and when a call waits for a person.
type TaskNote struct {
	Worker string `json:"worker"`          // that runs the task, or ran it last
	Host   string `json:"host"`            // of the worker
	Agent  string `json:"agent,omitempty"` // name of the backend
	// Session is that of the agent on Host, and Turns are those of it that are done.
	Session string `json:"session,omitempty"`
	Turns   int    `json:"turns,omitempty"`
	// Kept is the name in Job.Files of the session and the workspace, as they were when a turn had ended or
	// the attempt was interrupted, and Unkept why those of the last turn are not there; see Job.Move.
	Kept   string `json:"kept,omitempty"`
	Unkept string `json:"unkept,omitempty"`
	// Usage is that of all attempts since the task was requeued last, by all programs.
	Usage Usage `json:"usage"`
	// Running says that an attempt has begun, and has not ended. Alone: nothing else ran there.
	Running bool `json:"running,omitempty"`
	Alone   bool `json:"alone,omitempty"`
	// Deaths counts the programs in a row that ended, or lost the task, while they ran it; Free the
	// starts that do not count for Job.MaxStarts, as those of Deaths.
	Deaths int `json:"deaths,omitempty"`
	Free   int `json:"free,omitempty"`
	// Approvals are the calls that wait for a person, and Used the IDs of those whose answers the
	// agent has had: an answer works once.
	Approvals []Approval `json:"approvals,omitempty"`
	Used      []string   `json:"used,omitempty"`
}
