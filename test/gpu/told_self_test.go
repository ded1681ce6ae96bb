package gpu

import (
	"maps"
	"strings"
	"testing"
)

// nvidia-smi's ways to say things, each seen in the answer of some driver and board.
const quirks = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
	<driver_version>615.23</driver_version>
	<!-- driver_version will be removed -->
	<kmd_version>615.23</kmd_version>
	<gpu id="00000000:1A:00.0">
		<uuid>GPU-1</uuid>
		<mig_devices>
			None
		</mig_devices>
		<platformInfo><chassis_serial_number></chassis_serial_number></platformInfo>
		<remapped_rows>N/A</remapped_rows>
		<applications_clocks><mem_clock>Requested functionality has been deprecated</mem_clock></applications_clocks>
		<power_readings><power_draw>97.10 W</power_draw></power_readings>
		<module_power_readings><power_draw>N/A</power_draw></module_power_readings>
		<processes>
			<process_info><pid>7</pid><type>C</type><used_memory>10 MiB</used_memory></process_info>
			<process_info><pid>7</pid><type>G</type><used_memory>30 MiB</used_memory></process_info>
			<process_info><pid>8</pid><type>C</type><used_memory>N/A</used_memory></process_info>
		</processes>
	</gpu>
	<gpu id="00000000:1B:00.0">
		<uuid>GPU-2</uuid>
		<mig_devices><mig_device><index>0</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>1</compute_instance_id>
			<fb_memory_usage><total>40448 MiB</total></fb_memory_usage></mig_device></mig_devices>
		<fb_memory_usage><total>81920 MiB</total></fb_memory_usage>
	</gpu>
</nvidia_smi_log>`

func TestXML(t *testing.T) {
	all, err := readXML(quirks)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		uuid, paths, text string
		there             bool
	}{
		{"GPU-1", "kmd_version|driver_version", "615.23", true},
		{"GPU-1", "platformInfo/chassis_serial_number", "", true},
		{"GPU-1", "remapped_rows/row_remapper_histogram/row_remapper_histogram_max", "N/A", true},
		{"GPU-1", "applications_clocks/mem_clock", "Requested functionality has been deprecated", true},
		{"GPU-1", "gpu_power_readings/power_draw|power_readings/power_draw", "97.10 W", true},
		{"GPU-1", "module_power_readings/power_draw|power_readings/power_draw", "97.10 W", true},
		{"GPU-1", "clocks/sm_clock", "", false},
		{"GPU-1", "mig_devices/mig_device[2/1]/fb_memory_usage/total", "", false},
		{"GPU-1", "process[7]", "30 MiB", true},
		{"GPU-1", "process[8]", "N/A", true},
		{"GPU-2", "mig_devices/mig_device[2/1]/fb_memory_usage/total", "40448 MiB", true},
		{"GPU-2", "fb_memory_usage/total", "81920 MiB", true},
	} {
		if text, _, there := all[want.uuid].text(want.paths); text != want.text || there != want.there {
			t.Errorf("%s of %s is %q (there: %v), want %q (there: %v)", want.paths, want.uuid, text, there, want.text, want.there)
		}
	}
	if _, err := readXML("NVIDIA-SMI has failed"); err == nil {
		t.Error("what is no XML is read")
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]quantity{
		"81559 MiB": {81559 * mebi, mebi}, "68.57 W": {68.57, .01}, "-8 C": {-8, 0}, "1980 MHz": {1.98e9, 0}, "7 %": {.07, 0}, "100.00%": {1, 0},
		"2560 bank(s)": {2560, 0}, "16x": {16, 0}, "91403239 us": {91.403239, 1e-6}, "150": {150, 0}, "P8": {8, 0}, "Enabled": {1, 0}, "Not Active": {0, 0},
	} {
		if got, ok := number(text); !ok || show(got.value) != show(want.value) || got.grain != want.grain {
			t.Errorf("%q is %v (%v), want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"N/A", "[N/A]", "", "GPU is lost", "81559 Mi", "P", "Pending", "1.2.3 W", "0x1"} {
		if got, ok := number(text); ok {
			t.Errorf("%q is %v, want no number", text, got)
		}
	}
}

// Drivers R535 to R555 print the name of a fabric field before its value.
func TestCSV_FabricFieldsWithTheirNames(t *testing.T) {
	for _, c := range []struct{ field, answer, want string }{
		{"fabric.state", "state  Completed", "Completed"},
		{"fabric.state", "state In Progress", "In Progress"},
		{"fabric.state", "State : Not Started", "Not Started"},
		{"fabric.state", "Completed", "Completed"},
		{"fabric.state", "state N/A", "N/A"},
		{"fabric.state", "state", ""},
		{"fabric.state", "[N/A]", "[N/A]"},
		{"fabric.status", "status Success", "Success"},
		{"fabric.status", "Success", "Success"},
		{"fabric.cliqueId", "cliqueId 4026", "4026"},
		{"fabric.clusterUuid", "9c6f5af3-53bf-49b5-a436-b66766c413c3", "9c6f5af3-53bf-49b5-a436-b66766c413c3"},
		{"name", "name of a board", "name of a board"},
		{"pstate", "P0", "P0"},
	} {
		got := told{}
		got.csvLine([]string{c.field}, []string{c.answer})
		if text := got["csv:"+c.field]; text != c.want {
			t.Errorf("%s printed as %q is read as %q, want %q", c.field, c.answer, text, c.want)
		}
	}
}

// A value may be anywhere between what was said before and after, and as far beyond as its row
// allows; what only one of the two has may be there or not.
func TestBetween(t *testing.T) {
	const uuid = "GPU-1"
	w := row{ours: "x", theirs: "x", abs: 5}
	for _, c := range []struct {
		before, after, ours string
		want                verdict
	}{
		{"100", "120", "110", same},
		{"120", "100", "110", same},
		{"100", "120", "95", same},
		{"100", "120", "94", differs},
		{"100", "120", "126", differs},
		{"100", "N/A", "104", same},
		{"N/A", "100", "106", differs},
		{"N/A", "100", "", same},
		{"N/A", "[N/A]", "", neither},
		{"N/A", "N/A", "1", differs},
		{"100", "100", "", differs},
		{"many", "100", "100", differs},
	} {
		text := "x{gpu_uuid=\"" + uuid + "\"} " + c.ours + "\n"
		if c.ours == "" {
			text = ""
		}
		p, err := readPage(text)
		if err != nil {
			t.Fatal(err)
		}
		r := reading{map[string]told{uuid: {"x": c.before}}, map[string]told{uuid: {"x": c.after}}, p}
		if got := r.compare(uuid, w, "x"); got.verdict != c.want {
			t.Errorf("%q between %q and %q: %s, want %s (%s)", c.ours, c.before, c.after, got.verdict, c.want, got.why)
		}
	}
}

// A driver older than what we need of it may tell nvidia-smi what it does not tell us.
func TestSince(t *testing.T) {
	const uuid = "GPU-1"
	w := row{ours: "x", theirs: "x", since: 595}
	for driver, want := range map[string]verdict{"580.159.03": unread, "595.71.05": differs} {
		said := map[string]told{uuid: {"x": "0", "driver_version": driver}}
		if got := (reading{said, said, page{}}).compare(uuid, w, "x"); got.verdict != want {
			t.Errorf("driver %s: %s, want %s", driver, got.verdict, want)
		}
	}
}

// What only one side lists, of GPUs, of partitions and of processes, is seen.
func TestListsDiffer(t *testing.T) {
	const uuid = "GPU-1"
	p, err := readPage(`gpu_info{gpu_uuid="GPU-1",gpu_driver_version="580"} 1
gpu_partition_multiprocessors{gpu_uuid="GPU-1",gpu_partition_id="1/0"} 16
gpu_process_memory_usage_bytes{gpu_uuid="GPU-1",process_pid="7"} 10485760
`)
	if err != nil {
		t.Fatal(err)
	}
	const multiprocessors = "mig_devices/mig_device[1/0]/device_attributes/shared/multiprocessor_count"
	both := told{"uuid": uuid, "driver_version": "580", multiprocessors: "16", "process[7]": "10 MiB", "csv:app[7]": "10 MiB"}
	with := func(path, text string) told {
		out := maps.Clone(both)
		out[path] = text
		return out
	}
	without := func(path string) told {
		out := maps.Clone(both)
		delete(out, path)
		return out
	}
	for _, c := range []struct {
		name string
		told map[string]told
		want string // what differs
	}{
		{"nothing", map[string]told{uuid: both}, ""},
		{"a GPU of ours", map[string]told{}, "gpu_info@gpu_uuid"},
		{"a GPU of theirs", map[string]told{uuid: both, "GPU-2": {"uuid": "GPU-2"}}, "gpu_info@gpu_uuid"},
		{"a partition of ours", map[string]told{uuid: without(multiprocessors)}, "gpu_partition_multiprocessors{gpu_partition_id=1/0}"},
		{"a partition of theirs", map[string]told{uuid: with(strings.Replace(multiprocessors, "1/0", "2/0", 1), "16")}, "gpu_partition_multiprocessors{gpu_partition_id=2/0}"},
		{"a process of ours", map[string]told{uuid: without("process[7]")}, "gpu_process_memory_usage_bytes{process_pid=7}"},
		{"a process of theirs", map[string]told{uuid: with("process[8]", "10 MiB")}, "gpu_process_memory_usage_bytes{process_pid=8}"},
		{"a compute app of theirs", map[string]told{uuid: with("csv:app[9]", "10 MiB")}, "gpu_process_memory_usage_bytes{process_pid=9}"},
	} {
		found := those(reading{c.told, c.told, p}.judge(), differs)
		if (c.want == "") != (len(found) == 0) || c.want != "" && found[0].value != c.want {
			t.Errorf("%s: %v, want %s", c.name, found, c.want)
		}
	}
}
