// How the GPUs are tied to the host and to each other.
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, R_pcie_gen)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, R_pcie_width)
ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, R_pcie_gen_max)
ANSWER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, R_pcie_width_max)
ANSWER(nvmlDeviceGetPcieReplayCounter, unsigned int, R_pcie_replay)
#if DRIVER >= 510
ANSWER(nvmlDeviceGetPcieLinkMaxSpeed, unsigned int, R_pcie_speed_max)
#endif
#if DRIVER >= 515
ANSWER(nvmlDeviceGetPcieSpeed, unsigned int, R_pcie_speed)
#endif
#if DRIVER >= 525
ANSWER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, R_pcie_gpu_gen_max)
#endif

// The driver counts for 20 ms.
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, nvmlPcieUtilCounter_t counter, unsigned int *kilobytes) {
	ENTER_DEVICE(d);
	if (counter >= NVML_PCIE_UTIL_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	if (!has(c, gpu, R_throughput)) return NVML_ERROR_NOT_SUPPORTED;
	usleep(20000);
	long long bytes;
	TAKE(bytes, counter == NVML_PCIE_UTIL_TX_BYTES ? R_pcie_tx : R_pcie_rx);
	*kilobytes = bytes / 1000;
	return NVML_SUCCESS;
}

#if DRIVER >= 545
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t d, nvmlC2cModeInfo_v1_t *out) {
	ENTER_DEVICE(d);
	TAKE(out->isC2cEnabled, R_c2c);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 525
static void cluster(unsigned char *uuid) {
	for (int i = 0; i < NVML_GPU_FABRIC_UUID_LEN; i++) uuid[i] = 0xc0 + i;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *out) {
	ENTER_DEVICE(d);
	TAKE(out->state, R_fabric_state);
	TAKE(out->status, R_fabric_status);
	TAKE(out->cliqueId, R_fabric_clique);
	cluster(out->clusterUuid);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 550
// The third version of the struct is the second with one field more.
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t *out) {
	ENTER_DEVICE(d);
	const int third = DRIVER >= 580 && out->version == nvmlGpuFabricInfo_v3;
	if (!third && out->version != nvmlGpuFabricInfo_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	TAKE(out->state, R_fabric_state);
	TAKE(out->status, R_fabric_status);
	TAKE(out->cliqueId, R_fabric_clique);
	TAKE(out->healthMask, R_fabric_mask);
	if (third) TAKE(out->healthSummary, R_fabric_health);
	cluster(out->clusterUuid);
	return NVML_SUCCESS;
}
#endif

// link_there refuses a link that no GPU of this driver has, and one that this GPU lacks.
static nvmlReturn_t link_there(const struct config *c, int gpu, unsigned int link) {
	unsigned int most = c->major >= 610 ? 36 : c->major >= 525 ? 18 : 12;
	if (link >= most) return NVML_ERROR_INVALID_ARGUMENT;
	return has(c, gpu, R_nvlinks) && link < get(c, gpu, R_nvlinks) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

#define ENTER_LINK(d, link) \
	ENTER_DEVICE(d); \
	const nvmlReturn_t absent = link_there(c, gpu, link); \
	if (absent != NVML_SUCCESS) return absent

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, nvmlEnableState_t *up) {
	ENTER_LINK(d, link);
	*up = !(c->gpu[gpu].down >> link & 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t d, unsigned int link, unsigned int *version) {
	ENTER_LINK(d, link);
	TAKE(*version, R_nvlink_version);
	return NVML_SUCCESS;
}

#if DRIVER >= 470
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned int link, nvmlIntNvLinkDeviceType_t *type) {
	ENTER_LINK(d, link);
	TAKE(*type, R_nvlink_remote);
	return NVML_SUCCESS;
}
#endif

// The links lead to four switches in turn, or to the next GPU.
static nvmlReturn_t remote(const struct config *c, int gpu, unsigned int link, nvmlPciInfo_t *pci) {
	unsigned int bus = c->gpu[(gpu + 1) % c->gpus].bus;
	if (has(c, gpu, R_nvlink_remote) && get(c, gpu, R_nvlink_remote) == NVML_NVLINK_DEVICE_TYPE_SWITCH) bus = 0xc0 + link % 4;
	*pci = (nvmlPciInfo_t){.bus = bus};
	snprintf(pci->busId, sizeof pci->busId, NVML_DEVICE_PCI_BUS_ID_FMT, 0, bus, 0);
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT, 0, bus & 0xff, 0);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned int link, nvmlPciInfo_t *pci) {
	ENTER_LINK(d, link);
	return remote(c, gpu, link, pci);
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t d, unsigned int link, nvmlNvLinkErrorCounter_t counter, unsigned long long *n) {
	static const enum reading what[] = {R_nvlink_replay, R_nvlink_recovery, R_nvlink_crc, R_nvlink_crc, R_nvlink_ecc};
	ENTER_LINK(d, link);
	if (counter >= NVML_NVLINK_ERROR_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	if (has(c, gpu, R_nvlink5) && get(c, gpu, R_nvlink5) == 1) return NVML_ERROR_NOT_SUPPORTED; // it counts others
	TAKE(*n, what[counter]);
	return NVML_SUCCESS;
}
