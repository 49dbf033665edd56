package recording

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Address is a place in the target's memory; in JSON a string such as "0x7f0000001000",
// because a JSON number holds only 53 bits.
type Address uint64

// String returns the address in hexadecimal with its prefix.
func (a Address) String() string { return "0x" + strconv.FormatUint(uint64(a), 16) }

// MarshalJSON writes the address as a string.
func (a Address) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Address) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("address %.40s: want a string such as \"0x7f00\"", data)
	}
	digits, found := strings.CutPrefix(text, "0x")
	value, err := strconv.ParseUint(digits, 16, 64)
	if !found || err != nil {
		return fmt.Errorf("address %.40q: want a string such as \"0x7f00\"", text)
	}
	*a = Address(value)
	return nil
}
