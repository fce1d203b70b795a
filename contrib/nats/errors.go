package troupenats

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors, to be matched with errors.Is. Each comes in an [*Error], as nats.ErrPermissionViolation
// does. A job whose queue returns one of them stops with fleet.StopQueue and can be resumed.
var (
	// ErrConfig says that a [Config] is wrong, or the id of a task.
	ErrConfig = errors.New("this is not a valid configuration")
	// ErrReplicas says that a cluster keeps a job on fewer than 3 servers: one disk that
	// fails then loses results.
	ErrReplicas = errors.New("the servers are a cluster, and the job is not on 3 of them")
	// ErrOldServer says that a server is before 2.11, which ends no leases.
	ErrOldServer = errors.New("the server is older than 2.11")
	// ErrNoJetStream says that the servers have no JetStream for this account.
	ErrNoJetStream = errors.New("the servers have no JetStream")
	// ErrSettings says that a stream has settings that lose results, as delete markers do.
	ErrSettings = errors.New("the stream has settings that lose results")
	// ErrProtocol says that a newer Troupe has made the stream, in a way that this one does not know.
	ErrProtocol = errors.New("the stream has another protocol")
	// ErrGone says that the stream of a job was deleted, and perhaps made anew. The
	// results in the job's journal are not lost.
	ErrGone = errors.New("the stream was deleted")
	// ErrFull says that the servers have no room for a file. A [Queue] waits for room instead.
	ErrFull = errors.New("the servers have no room")
	// ErrClosed says that a [Queue] was closed.
	ErrClosed = errors.New("the queue is closed")
)

// Error says what failed, where, and what to do.
type Error struct {
	Where string // a stream, a server or a field of a configuration
	Err   error  // one of the errors of this package, or what NATS has said
	Do    string // "": there is nothing to do that is known
}

func (e *Error) Error() string {
	text := fmt.Sprintf("nats: %s: %v", e.Where, e.Err)
	if e.Do != "" {
		text += ": " + e.Do
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Codes of JetStream that nats.go has no error for.
const (
	noPeers      jetstream.ErrorCode = 10005
	notClustered jetstream.ErrorCode = 10074 // replicas on a single server, or one that still starts
	// wrongSequence and writeInProcess are those of a compare-and-swap that failed. The second
	// one says that another write of the subject is under way, perhaps an earlier try.
	wrongSequence  jetstream.ErrorCode = 10071
	writeInProcess jetstream.ErrorCode = 10164
	// No room, in the account, on the disk, or in the stream.
	noResources    jetstream.ErrorCode = 10023
	accountIsFull  jetstream.ErrorCode = 10002
	memoryIsFull   jetstream.ErrorCode = 10028
	storageIsFull  jetstream.ErrorCode = 10047
	storeHasFailed jetstream.ErrorCode = 10077
)

func codeOf(err error) jetstream.ErrorCode {
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	return 0
}

// full reports whether the servers have no room for a write.
func full(err error) bool {
	switch codeOf(err) {
	case noResources, accountIsFull, memoryIsFull, storageIsFull, storeHasFailed:
		return true
	}
	return false
}

// silent reports whether a request had no listener: there is no leader, no JetStream or no
// stream.
func silent(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

// fatal reports whether a further try cannot help: the connection is closed, the message is too
// large, permissions are missing, or the servers say that the request is wrong.
func fatal(err error) bool {
	for _, never := range []error{nats.ErrConnectionClosed, nats.ErrMaxPayload, nats.ErrPermissionViolation, nats.ErrAuthorization} {
		if errors.Is(err, never) {
			return true
		}
	}
	var js jetstream.JetStreamError
	if !errors.As(err, &js) || js.APIError() == nil {
		return false
	}
	switch e := js.APIError(); e.ErrorCode {
	case wrongSequence, writeInProcess, accountIsFull:
		return false
	case jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return true
	default:
		return e.Code >= 400 && e.Code < 500 && e.Code != 408
	}
}

// explain is an error of a request that is not made again.
func explain(where string, err error) error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return err
	case codeOf(err) == jetstream.JSErrCodeStreamNotFound:
		return gone(where)
	case codeOf(err) == jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return &Error{where, fmt.Errorf("%w: %w", ErrNoJetStream, err), "enable JetStream for the account that this program connects as"}
	case errors.Is(err, nats.ErrConnectionClosed):
		return &Error{where, err, "use a connection that reconnects without a limit, as Connect makes it, and close it after the queue"}
	case errors.Is(err, nats.ErrMaxPayload):
		return &Error{where, err, "raise max_payload, to the same on all servers"}
	case errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrAuthorization):
		return &Error{where, err, "the user of this connection must publish to troupe.>, $JS.API.> and $O.>, and subscribe to _INBOX.>"}
	}
	return &Error{where, err, ""}
}

func gone(stream string) error {
	return &Error{stream, ErrGone, "resume the job: its tasks are offered again, and what its journal has is kept"}
}
