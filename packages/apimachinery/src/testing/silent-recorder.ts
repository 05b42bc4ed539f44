import type { EventRecorder } from "../controller/event-recorder.ts";

/** A recorder that discards events. */
export const silentRecorder: EventRecorder = { event() {}, flush: () => Promise.resolve() };
