import { duration, int32 } from "@coxswain/apimachinery/flags/types";
import { within } from "./concurrency.ts";

/** Endpoints and endpoint slices. */

export const endpointSettings = {
  endpointUpdatesBatchMs: duration({
    flag: "endpoint-updates-batch-period",
    help: "How long endpoint updates wait for more pod changes, so that there are fewer of them. A larger value means longer delays.",
  }),
};

export const endpointSliceSettings = {
  endpointSliceUpdatesBatchMs: duration({
    flag: "endpointslice-updates-batch-period",
    help: "How long endpoint slice updates wait for more pod changes, so that there are fewer of them. A larger value means longer delays.",
  }),
  maxEndpointsPerSlice: int32({
    flag: "max-endpoints-per-slice",
    default: 100,
    must: within(1, 1000),
    help: "The largest number of endpoints that are added to an EndpointSlice. More make fewer and larger slices.",
  }),
};

export const mirroringSettings = {
  updatesBatchMs: duration({
    flag: "mirroring-endpointslice-updates-batch-period",
    help: "How long updates of mirrored endpoint slices wait for more changes.",
  }),
  maxEndpointsPerSubset: int32({
    flag: "mirroring-max-endpoints-per-subset",
    default: 1000,
    must: within(1, 1000),
    help: "The largest number of endpoints that are added to an EndpointSlice by mirroring.",
  }),
};
