// Numbered fields.
#include "probe.h"

#include <stdlib.h>

static nvmlFieldValue_t ask(nvmlDevice_t d, unsigned int id, unsigned int scope) {
	nvmlFieldValue_t v = {.fieldId = id, .scopeId = scope};
	WANT(nvmlDeviceGetFieldValues(d, 1, &v), NVML_SUCCESS);
	return v;
}

// fields prints what the driver means by the ids that have moved: for each its return code, type and value.
void fields(void) {
	static const unsigned int ids[] = {74, 147, 186, 197, 230, 251, 253, 256, 269, 271, 274, 297, 301, 400};
	tell("gpus 1\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d = device(0);
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		nvmlFieldValue_t v = ask(d, ids[i], 0);
		if (v.nvmlReturn) printf("%u:%d ", ids[i], v.nvmlReturn);
		else printf("%u=%s ", ids[i], v.valueType == NVML_VALUE_TYPE_UNSIGNED_INT ? "uint" : v.value.ullVal % 1000000000 ? "count" : "time");
	}
}

void overrides(void) {
	nvmlFieldValue_t v;
	unsigned int mw;
	tell("board gb200 1\nfield 0 186 uint 0xFFFFFFFF\nfield 0 83 ulonglong 9200000000000000000\nfield 0 138 5 int -1\n"
	     "field * 82 double 1.5\nfield 0 230 error 999\nset 0 temperature none\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d = device(0), gb = device(1);
	v = ask(d, 186, 0);
	WANT(v.value.uiVal, 0xFFFFFFFF);
	v = ask(d, 83, 0);
	WANT(v.value.ullVal, 9200000000000000000ull);
	v = ask(d, 138, 5);
	WANT(v.valueType, NVML_VALUE_TYPE_SIGNED_INT);
	WANT(v.value.siVal, -1);
	v = ask(d, 138, 4);
	WANT(v.valueType, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
	v = ask(gb, 82, 0);
	WANT(v.value.dVal, 1.5);
	v = ask(d, 230, 0);
	WANT(v.nvmlReturn, NVML_ERROR_UNKNOWN);
	WANT(nvmlDeviceGetTemperature(d, NVML_TEMPERATURE_GPU, &mw), NVML_ERROR_NOT_SUPPORTED);
	// the parts of a superchip
	v = ask(gb, 186, 1);
	WANT(v.value.uiVal, 1300000);
	v = ask(d, 185, 1);
	WANT(v.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	// errors of NVLink up to the fourth generation and after
	v = ask(d, 161, 0);
	WANT(v.nvmlReturn, NVML_SUCCESS);
	v = ask(d, 206, 0);
	WANT(v.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	v = ask(gb, 161, 0);
	WANT(v.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	v = ask(gb, 220, 17);
	WANT(v.value.ullVal, 0x10F);
	v = ask(gb, 220, 18);
	WANT(v.nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);

	tell("garbage 0\n");
	WANT(nvmlDeviceGetPowerUsage(d, &mw), NVML_SUCCESS);
	WANT(mw == 0xFFFFFFFF || mw == 808334905, 1);
	v = ask(d, 83, 0);
	WANT(v.value.sllVal, -1);
}
