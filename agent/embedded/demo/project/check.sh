#!/bin/sh
# Runs words.sh on each line of cases.txt, and fails if a number is wrong.
failed=0
while read -r want text; do
	[ "$want" = "#" ] && continue
	got=$(/bin/sh words.sh "$text")
	if [ "$got" = "$want" ]; then
		echo "ok    $want: $text"
	else
		echo "FAIL  $got and not $want: $text"
		failed=1
	fi
done <cases.txt
exit $failed
