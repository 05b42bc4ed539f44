import { cpus } from "node:os";

/** What the cores of the machine have worked since it started, together and for all programs, in ms. */
export const busyMs = (): number => cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
