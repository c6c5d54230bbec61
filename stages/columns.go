package stages

import (
	"encoding/json"
	"fmt"
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
