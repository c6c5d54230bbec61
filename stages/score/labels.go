package score

import (
	"fmt"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// fits refuses a label that isn't one of a model's classes, if it's known how many these are: no prediction
// is such a label, so the data set's classes aren't the model's. A single output tells two labels apart.
func fits(label int64, model stages.Facts) error {
	classes, err := strconv.Atoi(model["classes"])
	if err != nil || label >= 0 && label < int64(max(classes, 2)) {
		return nil
	}
	return fmt.Errorf("the label is %d, and the model has %d classes, 0 to %d: the data set's classes must "+
		"be the model's, in its order, which the parameter names of dataset/folder gives", label, classes,
		classes-1)
}
