// Memory errors, and what is done about them.
#include "config.h"

#include <string.h>

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
	ENTER_DEVICE(d);
	TAKE(*current, R_ecc);
	TAKE(*pending, R_ecc_pending);
	return NVML_SUCCESS;
}

// errors are counted by [uncorrected][aggregate].
static const enum reading all[2][2] = {{R_ecc_corrected, R_ecc_corrected_lifetime}, {R_ecc_uncorrected, R_ecc_uncorrected_lifetime}};
static const enum reading sram[2][2] = {{R_sram_corrected, R_sram_corrected_lifetime}, {R_sram_uncorrected, R_sram_uncorrected_lifetime}};

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *n) {
	ENTER_DEVICE(d);
	if (type > 1 || counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
	if (!has(c, gpu, R_ecc)) return NVML_ERROR_NOT_SUPPORTED;
	TAKE(*n, all[type][counter]);
	return NVML_SUCCESS;
}

// What is not in SRAM is in DRAM; a MIG device is asked too.
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t d, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t where, unsigned long long *n) {
	ENTER_EITHER(d);
	if (type > 1 || counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
	if (!has(c, gpu, R_ecc)) return NVML_ERROR_NOT_SUPPORTED;
	if (where != NVML_MEMORY_LOCATION_DRAM && where != NVML_MEMORY_LOCATION_SRAM) return NVML_ERROR_NOT_SUPPORTED;
	if (where == NVML_MEMORY_LOCATION_SRAM) {
		TAKE(*n, sram[type][counter]);
		return NVML_SUCCESS;
	}
	TAKE(*n, all[type][counter]);
	if (!c->gpu[gpu].garbage && has(c, gpu, sram[type][counter])) *n -= get(c, gpu, sram[type][counter]);
	return NVML_SUCCESS;
}

#if DRIVER >= 550
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t d, nvmlEccSramErrorStatus_t *out) {
	ENTER_DEVICE(d);
	VERSIONED(out, nvmlEccSramErrorStatus_v1);
	if (!has(c, gpu, R_sram_status)) return NVML_ERROR_NOT_SUPPORTED;
	TAKE(out->aggregateUncParity, R_sram_parity_lifetime);
	TAKE(out->aggregateUncSecDed, R_sram_secded_lifetime);
	TAKE(out->aggregateCor, R_sram_corrected_lifetime);
	TAKE(out->volatileUncParity, R_sram_parity);
	TAKE(out->volatileUncSecDed, R_sram_secded);
	TAKE(out->volatileCor, R_sram_corrected);
	TAKE(out->aggregateUncBucketL2, R_sram_l2);
	TAKE(out->aggregateUncBucketSm, R_sram_sm);
	TAKE(out->aggregateUncBucketPcie, R_sram_pcie);
	TAKE(out->aggregateUncBucketMcu, R_sram_mcu);
	TAKE(out->aggregateUncBucketOther, R_sram_other);
	TAKE(out->bThresholdExceeded, R_sram_exceeded);
	return NVML_SUCCESS;
}
#endif

// The header refuses remapped rows while there are instances, not while MIG is only on.
#define NOT_WITH_INSTANCES() \
	if (c->gpu[gpu].mig && c->gpu[gpu].instances) return NVML_ERROR_NOT_SUPPORTED

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending,
                                       unsigned int *failed) {
	ENTER_DEVICE(d);
	NOT_WITH_INSTANCES();
	TAKE(*corrected, R_remap_corrected);
	TAKE(*uncorrected, R_remap_uncorrected);
	TAKE(*pending, R_remap_pending);
	TAKE(*failed, R_remap_failed);
	return NVML_SUCCESS;
}

#if DRIVER >= 595
nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t d, nvmlRemappedRowsInfo_v2_t *out) {
	ENTER_DEVICE(d);
	NOT_WITH_INSTANCES();
	TAKE(out->corrActiveRemaps, R_remap_corrected);
	TAKE(out->corrInactiveRemaps, R_remap_corrected_inactive);
	TAKE(out->uncActiveRemaps, R_remap_uncorrected);
	TAKE(out->uncInactiveRemaps, R_remap_uncorrected_inactive);
	TAKE(out->bPending, R_remap_pending);
	TAKE(out->bFailureOccurred, R_remap_failed);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 455
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t d, nvmlRowRemapperHistogramValues_t *out) {
	ENTER_DEVICE(d);
	TAKE(out->max, R_banks_max);
	TAKE(out->high, R_banks_high);
	TAKE(out->partial, R_banks_partial);
	TAKE(out->low, R_banks_low);
	TAKE(out->none, R_banks_none);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 580
nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t d, nvmlRepairStatus_t *out) {
	ENTER_DEVICE(d);
	VERSIONED(out, nvmlRepairStatus_v1);
	TAKE(out->bChannelRepairPending, R_repair_channel);
	TAKE(out->bTpcRepairPending, R_repair_tpc);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 590
nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t d, nvmlUnrepairableMemoryStatus_v1_t *out) {
	ENTER_DEVICE(d);
	TAKE(out->bUnrepairableMemory, R_unrepairable);
	return NVML_SUCCESS;
}
#endif

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *n,
                                          unsigned long long *addresses, unsigned long long *times) {
	ENTER_DEVICE(d);
	if (cause >= NVML_PAGE_RETIREMENT_CAUSE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	const enum reading what = cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR ? R_retired_dbe : R_retired_sbe;
	if (!has(c, gpu, what)) return NVML_ERROR_NOT_SUPPORTED;
	const unsigned int room = *n, pages = c->gpu[gpu].value[what]; // never garbage: callers make room for them
	*n = pages;
	if (pages > room) return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < pages; i++) {
		addresses[i] = 0x10000ull * (i + 1);
		times[i] = 1700000000ull * 1000000 + i;
	}
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, R_retired_pending)
