import type { Rule } from "@coxswain/apimachinery/flags/rules";
import { duration, int32 } from "@coxswain/apimachinery/flags/types";

/** Endpoints and endpoint slices. */

const within = (least: number, most: number): Rule<number> => ({
  kind: "within",
  allowed: `${least} to ${most}`,
  problem: (value, { flag }) => {
    if (value < least) return `${flag} must not be less than ${least}, but got ${value}`;
    return value > most ? `${flag} must not be more than ${most}, but got ${value}` : undefined;
  },
});

export const endpointFlags = {
  "concurrent-endpoint-syncs": int32({
    default: 5,
    help: "Endpoints that may be synced at once. More answer faster and cost more CPU and network.",
  }),
  "endpoint-updates-batch-period": duration({
    help: "How long endpoint updates wait for more pod changes, so that there are fewer of them. A larger value means longer delays.",
  }),
};

export const endpointSliceFlags = {
  "concurrent-service-endpoint-syncs": int32({
    default: 5,
    must: within(1, 50),
    help: "Services whose endpoint slices may be synced at once.",
  }),
  "endpointslice-updates-batch-period": duration({
    help: "How long endpoint slice updates wait for more pod changes, so that there are fewer of them. A larger value means longer delays.",
  }),
  "max-endpoints-per-slice": int32({
    default: 100,
    must: within(1, 1000),
    help: "The largest number of endpoints that are added to an EndpointSlice. More make fewer and larger slices.",
  }),
};

export const mirroringFlags = {
  "mirroring-concurrent-service-endpoint-syncs": int32({
    default: 5,
    must: within(1, 50),
    help: "Services whose endpoints may be mirrored at once.",
  }),
  "mirroring-endpointslice-updates-batch-period": duration({
    help: "How long updates of mirrored endpoint slices wait for more changes.",
  }),
  "mirroring-max-endpoints-per-subset": int32({
    default: 1000,
    must: within(1, 1000),
    help: "The largest number of endpoints that are added to an EndpointSlice by mirroring.",
  }),
};
