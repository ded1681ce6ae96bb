// What a board is and how it is set.
#include "smi.h"

#include <stdio.h>

#define TEXT(path, name, ...) \
	do { \
		char out[96] = ""; \
		nvmlReturn_t code = CALL(name, d, ##__VA_ARGS__, out, sizeof out); \
		say(path, code, "%s", out); \
	} while (0)

#define NUMBER(path, name, format) \
	do { \
		unsigned int out = 0; \
		nvmlReturn_t code = CALL(name, d, (void *)&out); \
		say(path, code, format, out); \
	} while (0)

#define SWITCH(path, name) \
	do { \
		unsigned int out = 0; \
		nvmlReturn_t code = CALL(name, d, (void *)&out); \
		say(path, code, "%s", enabled(out)); \
	} while (0)

// word is the n-th of a list, which ends with NULL.
static const char *word(const char *const *words, unsigned int n) {
	for (unsigned int i = 0; words[i]; i++)
		if (i == n) return words[i];
	return "Unknown";
}

static void versions(nvmlDevice_t d) {
	TEXT("vbios_version", nvmlDeviceGetVbiosVersion);
	TEXT("board_part_number", nvmlDeviceGetBoardPartNumber);
	TEXT("inforom_version/img_version", nvmlDeviceGetInforomImageVersion);
	TEXT("inforom_version/oem_object", nvmlDeviceGetInforomVersion, NVML_INFOROM_OEM);
	TEXT("inforom_version/ecc_object", nvmlDeviceGetInforomVersion, NVML_INFOROM_ECC);
	TEXT("inforom_version/pwr_object", nvmlDeviceGetInforomVersion, NVML_INFOROM_POWER);
	char firmware[NVML_GSP_FIRMWARE_VERSION_BUF_SIZE] = "";
	nvmlReturn_t code = CALL(nvmlDeviceGetGspFirmwareVersion, d, firmware);
	say("gsp_firmware_version", code, "%s", firmware);
	unsigned int on = 0, usual;
	code = CALL(nvmlDeviceGetGspFirmwareMode, d, &on, &usual);
	say("csv/gsp/mode/current", code, "%s", enabled(on));
}

static void place(nvmlDevice_t d) {
	nvmlPlatformInfo_t p = {.version = nvmlPlatformInfo_v2};
	nvmlReturn_t code = CALL(nvmlDeviceGetPlatformInfo, d, &p), rack = code ? code : p.slotNumber ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
	NUMBER("minor_number", nvmlDeviceGetMinorNumber, "%u");
	say("platformInfo/chassis_serial_number", NVML_ERROR_NOT_SUPPORTED, " ");
	say("platformInfo/slot_number", rack, "%u", p.slotNumber);
	say("platformInfo/tray_index", rack, "%u", p.trayIndex);
	say("platformInfo/host_id", code, "%u", p.hostId);
	NUMBER("platformInfo/module_id", nvmlDeviceGetModuleId, "%u");
	say("platformInfo/gpu_fabric_guid", code, "0x%016x", 0);
	nvmlPciInfo_t pci = {0};
	code = CALL(nvmlDeviceGetPciInfo_v3, d, &pci);
	say("pci/pci_bus_id", code, "%s", pci.busId);
	NUMBER("pci/pci_gpu_link_info/pcie_gen/max_link_gen", nvmlDeviceGetMaxPcieLinkGeneration, "%u");
	NUMBER("pci/pci_gpu_link_info/pcie_gen/current_link_gen", nvmlDeviceGetCurrPcieLinkGeneration, "%u");
	NUMBER("pci/pci_gpu_link_info/link_widths/max_link_width", nvmlDeviceGetMaxPcieLinkWidth, "%ux");
	NUMBER("pci/pci_gpu_link_info/link_widths/current_link_width", nvmlDeviceGetCurrPcieLinkWidth, "%ux");
	NUMBER("pci/replay_counter", nvmlDeviceGetPcieReplayCounter, "%u");
	nvmlFieldValue_t rollover = {.fieldId = NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER};
	code = CALL(nvmlDeviceGetFieldValues, d, 1, &rollover);
	say("pci/replay_rollover_counter", code ? code : rollover.nvmlReturn, "%u", rollover.value.uiVal);
}

static void modes(nvmlDevice_t d) {
	static const char *const users[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process", NULL};
	unsigned int now = 0, next = 0;
	nvmlReturn_t code = CALL(nvmlDeviceGetMigMode, d, &now, &next);
	say("mig_mode/current_mig", code, "%s", enabled(now));
	say("mig_mode/pending_mig", code, "%s", enabled(next));
	code = CALL(nvmlDeviceGetEccMode, d, (void *)&now, (void *)&next);
	say("ecc_mode/current_ecc", code, "%s", enabled(now));
	say("ecc_mode/pending_ecc", code, "%s", enabled(next));
	SWITCH("display_active", nvmlDeviceGetDisplayActive);
	SWITCH("persistence_mode", nvmlDeviceGetPersistenceMode);
	SWITCH("accounting_mode", nvmlDeviceGetAccountingMode);
	SWITCH("c2c_mode", nvmlDeviceGetC2cModeInfoV);
	code = CALL(nvmlDeviceGetComputeMode, d, (void *)&now);
	say("compute_mode", code, "%s", word(users, now));
	NUMBER("performance_state", nvmlDeviceGetPerformanceState, "P%u");
}

void tell_board(nvmlDevice_t d, unsigned int index) {
	static const char *const chips[] = {"", "", "", "", "", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell", NULL};
	static const char *const virtual[] = {"None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA", NULL};
	static const char *const lines[] = {"Unknown", "Quadro", "Tesla", "NVS", "Grid", "GeForce", "Titan", "", "", "", "", "", "Quadro RTX", "NVIDIA RTX", "NVIDIA", NULL};
	unsigned int n = 0;
	TEXT("product_name", nvmlDeviceGetName);
	nvmlReturn_t code = CALL(nvmlDeviceGetBrand, d, (void *)&n);
	say("product_brand", code, "%s", word(lines, n));
	code = CALL(nvmlDeviceGetArchitecture, d, &n);
	say("product_architecture", code, "%s", word(chips, n));
	TEXT("serial", nvmlDeviceGetSerial);
	TEXT("uuid", nvmlDeviceGetUUID);
	nvmlPdi_t pdi = {.version = nvmlPdi_v1};
	code = CALL(nvmlDeviceGetPdi, d, &pdi);
	say("pdi", code, "0x%016llx", pdi.value);
	code = CALL(nvmlDeviceGetVirtualizationMode, d, (void *)&n);
	say("gpu_virtualization_mode/virtualization_mode", code, "%s", word(virtual, n));
	int major = 0, minor = 0;
	code = CALL(nvmlDeviceGetCudaComputeCapability, d, &major, &minor);
	say("csv/compute_cap", code, "%d.%d", major, minor);
	say("csv/index", NVML_SUCCESS, "%u", index);
	versions(d);
	place(d);
	modes(d);
}
