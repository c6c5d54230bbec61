package score

import (
	"fmt"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// checkLabel rejects a label outside the model's classes, if their number is known: it could never be
// predicted, so the data set's classes aren't the model's.
func checkLabel(label int64, model stages.Facts) error {
	classes, err := strconv.Atoi(model["classes"])
	if err != nil || label >= 0 && label < int64(classes) {
		return nil
	}
	return fmt.Errorf("the label is %d, but the model has %d classes, 0 to %d: the data set's classes must "+
		"be the model's, in its order; its parameters names and first set it", label, classes,
		classes-1)
}
