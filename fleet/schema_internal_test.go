package fleet

import "reflect"

// JournalKinds are the kinds of the journal's records, with the types of their data, for the schema.
func JournalKinds() map[string]reflect.Type {
	empty := reflect.TypeFor[struct{}]()
	return map[string]reflect.Type{
		kindHost: reflect.TypeFor[hostRecord](), kindAdmitted: reflect.TypeFor[admittedRecord](), kindStarting: reflect.TypeFor[startingRecord](),
		kindTurn: reflect.TypeFor[turnRecord](), kindVerified: reflect.TypeFor[Verdict](), kindAttempt: reflect.TypeFor[attemptRecord](),
		kindResult: reflect.TypeFor[resultRecord](), kindParked: reflect.TypeFor[parkedRecord](), kindCanceled: empty, kindRequeued: empty,
		kindAsked: reflect.TypeFor[Approval](), kindDecided: reflect.TypeFor[decidedRecord](), kindUsed: reflect.TypeFor[decidedRecord](),
		kindAccepting: reflect.TypeFor[onAcceptRecord](), kindOnAccept: reflect.TypeFor[onAcceptRecord](), kindRepeat: reflect.TypeFor[onAcceptRecord](),
	}
}
