// Who the fake devices are.
#include "config.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *out, unsigned int length) {
	ENTER_EITHER(d);
	if (!d.handle->mig) return text(out, length, "%s", c->gpu[gpu].uuid);
	char of[MAX_TEXT];
	mig_uuid(of, sizeof of, gpu, instance_of(c, d.handle));
	return text(out, length, "%s", of);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *out, unsigned int length) {
	ENTER_EITHER(d);
	if (!d.handle->mig) return text(out, length, "%s", c->gpu[gpu].model);
	return text(out, length, "%s MIG %s", c->gpu[gpu].model, d.handle->profile);
}

// Among the MIG devices of a GPU those have numbers of their own.
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t d, unsigned int *index) {
	ENTER_EITHER(d);
	*index = d.handle->mig ? instance_of(c, d.handle) - c->gpu[gpu].instance : index_of(gpu);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t d, char *out, unsigned int length) {
	ENTER_DEVICE(d);
	return *c->gpu[gpu].serial ? text(out, length, "%s", c->gpu[gpu].serial) : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t d, unsigned int *minor) {
	ENTER_DEVICE(d);
	*minor = gpu;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t d, unsigned int *id) {
	ENTER_DEVICE(d);
	*id = c->gpu[gpu].domain << 16 | c->gpu[gpu].bus << 8;
	return NVML_SUCCESS;
}

ANSWER_TEXT(nvmlDeviceGetBoardPartNumber, "000-00000-0000-000")
ANSWER_TEXT(nvmlDeviceGetVbiosVersion, "96.00.00.00.%02X", gpu)
ANSWER_TEXT(nvmlDeviceGetInforomImageVersion, "G520.0200.00.%02X", gpu)
ANSWER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, R_arch)
ANSWER(nvmlDeviceGetBrand, nvmlBrandType_t, R_brand)
ANSWER(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, R_virtualization)

// A version is kept as its digits, the last two or one behind the point.
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t d, nvmlInforomObject_t object, char *out, unsigned int length) {
	ENTER_DEVICE(d);
	long long version;
	if (object == NVML_INFOROM_OEM) TAKE(version, R_inforom_oem);
	else if (object == NVML_INFOROM_ECC) TAKE(version, R_inforom_ecc);
	else return object == NVML_INFOROM_POWER ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
	return version < 100 ? text(out, length, "%lld.%lld", version / 10, version % 10)
	                     : text(out, length, "%lld.%02lld", version / 100, version % 100);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor) {
	ENTER_DEVICE(d);
	TAKE(*major, R_cc_major);
	TAKE(*minor, R_cc_minor);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *pci) {
	ENTER_DEVICE(d);
	const struct gpu *g = &c->gpu[gpu];
	*pci = (nvmlPciInfo_t){.domain = g->domain, .bus = g->bus, .device = g->device};
	TAKE(pci->pciDeviceId, R_pci_device);
	TAKE(pci->pciSubSystemId, R_pci_subsystem);
	snprintf(pci->busId, sizeof pci->busId, NVML_DEVICE_PCI_BUS_ID_FMT, g->domain, g->bus, g->device);
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT, g->domain & 0xffff, g->bus & 0xff, g->device & 0x1f);
	return NVML_SUCCESS;
}

#if DRIVER >= 515
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t d, char *version) {
	ENTER_DEVICE(d);
	if (!has(c, gpu, R_gsp)) return NVML_ERROR_NOT_SUPPORTED;
	return text(version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE, "%s", c->driver);
}

nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t d, unsigned int *enabled, unsigned int *byDefault) {
	ENTER_DEVICE(d);
	TAKE(*enabled, R_gsp);
	TAKE(*byDefault, R_gsp);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 535
ANSWER(nvmlDeviceGetModuleId, unsigned int, R_module)
#endif

#if DRIVER >= 550
ANSWER(nvmlDeviceGetNumaNodeId, unsigned int, R_numa)
#endif

#if DRIVER >= 570
// The two versions of the struct are of one size, and name the same bytes differently.
nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t d, nvmlPlatformInfo_t *out) {
	ENTER_DEVICE(d);
	if (out->version != nvmlPlatformInfo_v1 && out->version != nvmlPlatformInfo_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	TAKE(out->slotNumber, R_slot);
	TAKE(out->trayIndex, R_tray);
	TAKE(out->hostId, R_host);
	TAKE(out->peerType, R_peer);
	TAKE(out->moduleId, R_module);
	memset(out->ibGuid, 0, sizeof out->ibGuid);
	memset(out->chassisSerialNumber, 0, sizeof out->chassisSerialNumber);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 580
nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t d, nvmlPdi_t *out) {
	ENTER_DEVICE(d);
	VERSIONED(out, nvmlPdi_v1);
	TAKE(out->value, R_pdi);
	return NVML_SUCCESS;
}
#endif
