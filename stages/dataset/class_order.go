package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// The orders in which named classes are numbered.
const (
	autoOrder   = "auto"   // as text, with a warning if the numbers in names have another order
	textOrder   = "text"   // of the names as text, as in torchvision's ImageFolder and Keras
	numberOrder = "number" // by the number in a name
)

// maxNumber is the largest class number that a name can have.
const maxNumber = 1 << 16

// background is the name of class 0 if offset is 1.
const background = "background"

// numbered returns the numbers of classes with these names, which are sorted and distinct, and the names by
// number.
func (p FolderParams) numbered(names []string) (numbers []int, classes []string, err error) {
	if p.Order != numberOrder {
		for i := range names {
			numbers = append(numbers, i+p.Offset)
		}
		return numbers, append(slices.Repeat([]string{background}, p.Offset), names...), nil
	}
	found, err := numbersIn(names)
	if err != nil {
		return nil, nil, stages.BadField("order", "order is number: %w", err)
	}
	for i, n := range found {
		n += p.Offset - p.First
		if n < 0 {
			return nil, nil, stages.BadField("first", "first is %d, and %q has the number %d", p.First,
				names[i],
				found[i])
		}
		for len(classes) <= n { // a number that no name has
			classes = append(classes, strconv.Itoa(len(classes)-p.Offset+p.First))
		}
		numbers, classes[n] = append(numbers, n), names[i]
	}
	return numbers, classes, nil
}

// numbersIn returns the number in each name: the whole name, or the number at the beginning or at the end
// of all names.
func numbersIn(names []string) ([]int, error) {
	const digits = "0123456789"
	for _, part := range []func(name string) string{
		func(name string) string { return name },
		func(name string) string { return name[:len(name)-len(strings.TrimLeft(name, digits))] },
		func(name string) string { return name[len(strings.TrimRight(name, digits)):] },
	} {
		var numbers []int
		first := map[int]string{}
		for _, name := range names {
			n, err := strconv.Atoi(part(name))
			if err != nil || n < 0 {
				break
			}
			if n > maxNumber {
				return nil, fmt.Errorf("%q has a number beyond %d", name, maxNumber)
			}
			if other, twice := first[n]; twice {
				return nil, fmt.Errorf("%q and %q have the same number", other, name)
			}
			first[n] = name
			numbers = append(numbers, n)
		}
		if len(numbers) == len(names) {
			return numbers, nil
		}
	}
	return nil, fmt.Errorf("not all names of classes are numbers, or begin or end with one: %s", some(names))
}

// some quotes the first names of a list.
func some(names []string) string {
	var quoted []string
	for _, n := range names[:min(3, len(names))] {
		quoted = append(quoted, strconv.Quote(n))
	}
	if len(names) > 3 {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// orderRemark returns a remark if the numbers in the names of classes have another order than their text,
// and order doesn't decide.
func (p FolderParams) orderRemark(l *listing, folder string) []string {
	numbers, err := numbersIn(l.named)
	if p.Order != autoOrder || len(l.named) == 0 || err != nil {
		return nil
	}
	last := len(numbers) - 1
	whole := strings.Trim(l.named[0], "0123456789") == ""
	if slices.IsSorted(numbers) && !(whole && (numbers[0] > 1 || numbers[last]-numbers[0] != last)) {
		return nil
	}
	return []string{fmt.Sprintf("the classes %s of %q are numbered in the order of text, in which %q is "+
		"class %d; order: number takes the numbers in their names, order: text the order of text without "+
		"this warning",
		some(l.named), folder, l.named[last], last+p.Offset)}
}
