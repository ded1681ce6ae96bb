package resolve

import (
	"fmt"
	"regexp"
	"strconv"
)

var driverRange = regexp.MustCompile(`^(?:(\d{1,6})-(\d{1,6})|>=(\d{1,6})|<(\d{1,6}))$`)

// DriverRange reads "575-589", ">=590", "<575" or "" as the first and the last major version,
// 0 standing for no bound. No driver has version 0.
func DriverRange(s string) (first, last int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	m := driverRange.FindStringSubmatch(s)
	if m == nil {
		return 0, 0, fmt.Errorf(`driver range %q is none of "575-589", ">=590", "<575"`, s)
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(m[i]) // digits only, by the expression
		return n
	}
	switch {
	case m[3] != "":
		return number(3), 0, nil
	case m[4] != "":
		first, last = 0, number(4)-1
	default:
		first, last = number(1), number(2)
	}
	if last < max(first, 1) {
		return 0, 0, fmt.Errorf("driver range %q is empty", s)
	}
	return first, last, nil
}
