package stages

import (
	"fmt"
	"strconv"
)

// UnlikeClasses returns a sentence if the labels on a stage's input ports are of fewer classes than a model
// there has, according to their facts: then the numbers of the labels are hardly the model's. Otherwise it
// returns "".
func UnlikeClasses(s *Stage, ports map[string][]Data) string {
	count := func(t Type) (least, most int) {
		for i := range s.Inputs {
			if s.Inputs[i].Type.Name != t.Name {
				continue
			}
			for _, d := range ports[s.Inputs[i].Name] {
				if n, err := strconv.Atoi(d.Facts["classes"]); err == nil && n > 0 {
					if least == 0 || n < least {
						least = n
					}
					most = max(most, n)
				}
			}
		}
		return least, most
	}
	labels, _ := count(Labels)
	_, model := count(Model)
	if labels == 0 || labels >= model {
		return ""
	}
	return fmt.Sprintf("the labels are of %d classes, numbered from 0, and the model has %d: if they are "+
		"some of the model's, number them alike; a folder's names list the model's %[2]d classes for that",
		labels, model)
}
