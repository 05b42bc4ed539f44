/** Renews certificates before they expire. */
import { join } from "node:path";
import { missingFiles, type WantedFile, writeFiles } from "../host/files.ts";
import { startTimer, timers, timerUnits } from "../host/timer.ts";
import type { Machine } from "../machine.ts";
import { stoppedUnits } from "../node/steps.ts";
import type { Step } from "../steps.ts";

const units = ({ home, node }: Machine): WantedFile[] =>
  timerUnits({
    name: timers.renewal,
    description: "Renewal of the certificates that end soon",
    onCalendar: "daily",
    delay: "1h",
    words: [join(home, "bin", "coxswain"), "certs", "renew", "--expiring", `--node-name=${node.name}`],
  });

/** A systemd timer; the daemons load the new files by themselves. */
export const renewalStep: Step<Machine> = {
  name: "certs-renewal",
  missing: async (machine) => [...missingFiles(units(machine)), ...(await stoppedUnits([`${timers.renewal}.timer`]))],
  async run(machine) {
    writeFiles(units(machine));
    await startTimer(timers.renewal);
  },
};
