package resolve

import (
	"fmt"
	"regexp"
	"time"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// xidAction is the attribute whose members are the classes of the catalogue of XIDs, and unlisted
// the member for codes it does not have.
const xidAction, unlisted = "gpu.xid_action", "unknown"

var mnemonic = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

// XIDs is the catalogue of NVIDIA's XID errors.
type XIDs struct {
	schema.XIDFile
	Codes    []*XID // rising
	Action   *Attribute
	Unlisted string // Go constant of the action of a code that is not there
}

// XID is one code of the catalogue.
type XID struct {
	schema.XID
	GoAction string // Go constant of its action
}

// xids checks the catalogue.
func (r *resolver) xids(f *schema.XIDFile) {
	out := &XIDs{XIDFile: *f, Action: r.attributes[xidAction]}
	if out.Action == nil {
		r.faults.Add(f.Pos, "no attribute %s in spec/attributes.yaml, whose members are the actions", xidAction)
		return
	}
	if out.Unlisted = out.Action.NameOfMember(unlisted); out.Unlisted == "" {
		r.faults.Add(out.Action.Pos, "%s: no member %q, which codes need that spec/data/xids.yaml does not have", xidAction, unlisted)
	}
	if _, err := time.Parse(time.DateOnly, f.Date); err != nil {
		r.faults.Add(f.Pos, "date %q is not of the form 2025-10-29", f.Date)
	}
	first := map[uint32]schema.Pos{}
	for i, x := range f.XIDs {
		bad := func(format string, args ...any) {
			r.faults.Add(x.Pos, "xid %d: "+format, append([]any{x.Code}, args...)...)
		}
		if at, twice := first[x.Code]; twice {
			bad("is there twice, first at %s", at)
		} else if i > 0 && x.Code < f.XIDs[i-1].Code {
			bad("stands after %d; codes rise", f.XIDs[i-1].Code)
		}
		first[x.Code] = x.Pos
		if !mnemonic.MatchString(x.Mnemonic) {
			bad("mnemonic %q is not of upper-case words joined by underscores", x.Mnemonic)
		}
		checkBrief(x.Pos, fmt.Sprintf("xid %d", x.Code), x.Brief, &r.faults)
		checkBrief(x.Pos, fmt.Sprintf("xid %d: advice", x.Code), x.Advice, &r.faults)
		entry := &XID{XID: x, GoAction: out.Action.NameOfMember(x.Action)}
		switch {
		case entry.GoAction == "":
			bad("action %q is no member of %s%s", x.Action, xidAction, spell.Suggest(x.Action, out.Action.MemberIDs()))
		case x.Action == unlisted:
			bad("action %s is for codes that are not here", unlisted)
		}
		out.Codes = append(out.Codes, entry)
	}
	for _, ident := range []string{"XIDMeaning", "XIDMeaningOf", "XIDActionOf"} {
		r.declare(f.Pos, "the catalogue of XIDs", ident)
	}
	r.model.XIDs = out
}
