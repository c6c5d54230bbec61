package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

// What measures prints lines, as it goes, so that what was measured before it was stopped counts:
//
//	start BATCH                            a measurement begins
//	rate BATCH IMAGES/S                    and ends
//	compared STAGE DEVIATION TOLERANCE     of a stage's payloads from the processor's: see stages.Deviation
//	rounded STAGE QUANTITY PRECISION DEVIATION    from float32, of all but an eighth of 8 images: see
//	                                              stages.Rounded
//	failed WHAT why                        of a stage, or of a batch
//	note text
//
// torch_times.py prints the same.

// failed reports an error in one line.
func failed(w io.Writer, what any, err error) {
	fmt.Fprintf(w, "failed %v %s\n", what, oneLine(err.Error()))
}

// plainly returns an error of a device's work or, if there is no such device at all, why.
func plainly(class string, err error) error {
	r, none := ort.Default()
	if none == nil {
		_, none = r.Adapters(stages.Device{Class: class})
	}
	if none == nil {
		return err
	}
	fmt.Fprintln(os.Stderr, err) // to log.txt
	return fmt.Errorf("%s: %w", class, none)
}

// oneLine returns a text on a line, shortened.
func oneLine(text string) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > 500 {
		r = append(r[:500], '…')
	}
	return string(r)
}
