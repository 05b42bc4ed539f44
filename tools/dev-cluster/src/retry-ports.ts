/** Attempts to start a cluster before its failure is reported. */
const attempts = 3;

/** The steps of `startOnFreePorts`, which tests replace. */
export interface StartSteps<Chosen> {
  /** Chooses and saves the settings; must replace ports that are taken. */
  readonly decide: () => Promise<Chosen>;
  readonly start: (chosen: Chosen) => Promise<void>;
  /** Ports chosen by `decide`, not by the user, that another program listens on now; empty while own processes run. */
  readonly takenPorts: (chosen: Chosen) => Promise<number[]>;
  /** Reports that other ports are chosen. */
  readonly say: (text: string) => void;
  /** No further attempt once it is aborted. */
  readonly signal: AbortSignal;
}

/**
 * Starts a cluster, on other ports when a chosen one was taken before the cluster's process could listen on it. The registry's
 * lock only excludes clusters of the same user.
 * @returns the settings that the cluster runs with
 * @throws what `start` threw, when no port was taken meanwhile or the attempts are used up
 */
export async function startOnFreePorts<Chosen>(steps: StartSteps<Chosen>): Promise<Chosen> {
  for (let attempt = 1; ; attempt++) {
    const chosen = await steps.decide();
    try {
      await steps.start(chosen);
      return chosen;
    } catch (err) {
      const taken = attempt === attempts || steps.signal.aborted ? [] : await steps.takenPorts(chosen);
      if (taken.length === 0) throw err;
      const [port] = taken;
      steps.say(`port ${port} was taken by another program before the cluster could use it; trying others`);
    }
  }
}
