import { cpus } from "node:os";

/** CPU time of all cores for all processes since boot, without idle time, in ms. */
export const busyMs = (): number => cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
