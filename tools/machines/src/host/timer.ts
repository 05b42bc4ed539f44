/** Programs that systemd runs periodically. */
import { join } from "node:path";
import type { WantedFile } from "./files.ts";
import { runProgram } from "./programs.ts";
import { reloadUnits, unitFolder } from "./systemd.ts";
import { header, quoted } from "./units.ts";

/** Names without `.timer`. */
export const timers = { snapshots: "coxswain-etcd-snapshot", renewal: "coxswain-certs" } as const;

interface TimerOptions {
  /** One of {@link timers}. */
  readonly name: string;
  readonly description: string;
  /** As in systemd.time(7): `daily`, `*-*-* 0/6:00`. */
  readonly onCalendar: string;
  /** Random delay, so that machines with the same schedule do not run it at the same time. */
  readonly delay: string;
  /** The command line. */
  readonly words: readonly string[];
}

/** Pure: the timer and the service that it starts. */
export const timerUnits = ({ name, description, onCalendar, delay, words }: TimerOptions): WantedFile[] => [
  {
    path: join(unitFolder, `${name}.service`),
    content: `${header}[Unit]
Description=${description}
After=etcd.service

[Service]
Type=oneshot
ExecStart=${words.map(quoted).join(" ")}
`,
  },
  {
    path: join(unitFolder, `${name}.timer`),
    content: `${header}[Unit]
Description=${description}

[Timer]
OnCalendar=${onCalendar}
# One that was missed while the machine was off.
Persistent=true
RandomizedDelaySec=${delay}

[Install]
WantedBy=timers.target
`,
  },
];

export async function startTimer(name: string): Promise<void> {
  await reloadUnits();
  await runProgram("systemctl", ["enable", "--now", `${name}.timer`]);
}
