package stages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ItemColumns are what tables split by: the texts of an item by the names of columns, the payload of a port
// of type [Columns]. A column that has no value for the item is absent.
type ItemColumns map[string]string

// Encode returns the payload that holds c.
func (c ItemColumns) Encode() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // unreachable: JSON can represent every ItemColumns
	}
	return b
}

// DecodeColumns reads a payload written by Encode.
func DecodeColumns(b []byte) (c ItemColumns, err error) {
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("damaged columns: %w", err)
	}
	return c, nil
}

// LabelColumns are the names that lists of images have for the column of their labels, without regard to
// case.
var LabelColumns = []string{"label", "labels", "class", "target", "y", "category", "label_id", "class_id",
	"category_id", "class_index", "class_idx", "label_idx", "class_name", "classname", "label_name",
	"category_name", "species", "breed", "diagnosis"}

// HasClasses reports whether a column has the classes of items: labels, or predicted ones. Their numbers have
// no order.
func HasClasses(column string) bool {
	return strings.EqualFold(column, "predicted") || slices.ContainsFunc(LabelColumns,
		func(name string) bool {
			return strings.EqualFold(column, name)
		})
}
