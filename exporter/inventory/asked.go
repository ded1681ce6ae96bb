package inventory

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// maxAsked is far above what a machine holds, so that a slip does not make a page of a million devices.
const maxAsked = 1024

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	address = regexp.MustCompile(`^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	uuid    = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{7,127}$`)
)

// parse reads what a user asks for: one number of devices at most, UUIDs and PCI addresses.
func parse(words []string, vendor string) (devices []telemetry.Identity, count int, err error) {
	number := ""
	for _, w := range words {
		id := telemetry.Identity{Vendor: vendor, Index: -1}
		switch place := telemetry.NormalizePCI(w); {
		case digits.MatchString(w):
			if number != "" {
				return nil, 0, fmt.Errorf("two numbers, %s and %s", number, w)
			}
			number = w
			if count, err = strconv.Atoi(w); err != nil || count > maxAsked {
				return nil, 0, fmt.Errorf("%s is more than %d", w, maxAsked)
			}
			continue
		case address.MatchString(place):
			if len(place) < len("0000:00:00.0") { // as lspci writes it
				place = "0000:" + place
			}
			id.PCI = place
		case uuid.MatchString(w):
			id.UUID = w
		default:
			return nil, 0, fmt.Errorf("%q is not a number, UUID or PCI address", w)
		}
		if !has(devices, id) {
			devices = append(devices, id)
		}
	}
	if len(devices) > maxAsked {
		return nil, 0, fmt.Errorf("%d are more than %d", len(devices), maxAsked)
	}
	return devices, count, nil
}
