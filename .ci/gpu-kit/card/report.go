package main

import (
	"fmt"
	"io"
	"strings"
)

// What measures prints lines, as it goes, so that what was measured before it was stopped counts:
//
//	start BATCH                            a measurement begins
//	rate BATCH IMAGES/S                    and ends
//	compared STAGE DIFFERENCE TOLERANCE    of a stage's payloads from the processor's, as shares of the
//	                                       largest magnitude
//	failed WHAT why                        of a stage, or of a batch
//	note text
//
// torch_times.py prints the same.

// failed reports an error in one line.
func failed(w io.Writer, what any, err error) {
	fmt.Fprintf(w, "failed %v %s\n", what, oneLine(err.Error()))
}

// oneLine returns a text on a line, shortened.
func oneLine(text string) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > 500 {
		r = append(r[:500], '…')
	}
	return string(r)
}
