package transcript

// The types of lines that this package looks into.
const (
	typeUser                = "user"
	typeAssistant           = "assistant"
	typeAttachment          = "attachment"
	typeSystem              = "system"
	typeQueueOperation      = "queue-operation"
	typeLastPrompt          = "last-prompt"
	typeCustomTitle         = "custom-title"
	typeAITitle             = "ai-title"
	typeAgentName           = "agent-name"
	typeTag                 = "tag"
	typeRelocated           = "relocated"
	typeToolsUsed           = "tools-used"
	typeATISLatch           = "atis-latch"
	typeFileHistorySnapshot = "file-history-snapshot"
	typeFileHistoryDelta    = "file-history-delta"
	typeContentReplacement  = "content-replacement"
)

// snapshotEntry is a checkpoint of files, made at a user message. [Transcript.Checkpoints]
// reads all of them.
type snapshotEntry struct {
	MessageID string `json:"messageId"` // the UUID of the user line
	Snapshot  struct {
		Backups   map[string]Backup `json:"trackedFileBackups"` // by path, relative to the session's directory where possible
		Timestamp string            `json:"timestamp"`
	} `json:"snapshot"`
	IsUpdate bool `json:"isSnapshotUpdate"`
}

// snapshotDeltaEntry adds a file to a checkpoint, at the first change of the file.
type snapshotDeltaEntry struct {
	SnapshotMessageID string `json:"snapshotMessageId"` // the checkpoint
	Path              string `json:"trackingPath"`
	Backup            Backup `json:"backup"`
}

// Backup is a copy of a file.
type Backup struct {
	FileName   *string `json:"backupFileName"` // in file-history/<session>/; nil: the file did not exist
	Version    int     `json:"version"`
	BackupTime string  `json:"backupTime"`
	ParentDir  string  `json:"realParentDir"`
	// Missing says why there is no copy of a file that existed; "": there is one. The embedded
	// agent writes it.
	Missing string `json:"troupeMissing,omitempty"`
}

// leaf returns the member that names a leaf, under either name.
func (l *Line) leaf() []byte {
	if l.head.leaf != nil {
		return l.head.leaf
	}
	return l.head.leafOld
}

// attachmentKind returns the type of an attachment.
func attachmentKind(attachment []byte) string {
	if !isObject(attachment) {
		return ""
	}
	return text(get(attachment, "type"))
}
