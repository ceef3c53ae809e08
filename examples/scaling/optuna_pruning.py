"""Search parameters with Optuna, and stop trials with low scores early.

Each trial calls `partial_fit` repeatedly. After each epoch, it reports the pseudo-likelihood of
held-out rows, and ends if this score is below the median of earlier trials. The script prints the
best parameters and the fraction of the epochs that were saved.

    python examples/scaling/optuna_pruning.py
"""

import argparse

import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skrbm import BernoulliRBM

N_PASSES = 20


def objective(trial, train, held_out, n_passes=N_PASSES):
    """Held-out score of a trial in nats, which is reported after every epoch."""
    rate = trial.suggest_float("learning_rate", 0.001, 2, log=True)
    n_components = trial.suggest_categorical("n_components", [16, 64])
    rbm, score = BernoulliRBM(n_components, random_state=0), float("nan")
    for number in range(n_passes):
        rbm.set_params(learning_rate=rate * (1 - number / n_passes))  # decreases, as in fit
        score = rbm.partial_fit(train).score(held_out)
        trial.report(score, number)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


def run(train, held_out, n_trials, n_passes=N_PASSES):
    """Run a study, and return it."""
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=n_passes // 5),
    )
    study.optimize(lambda trial: objective(trial, train, held_out, n_passes), n_trials)
    return study


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data = train_test_split(load_digits().data > 7, random_state=0)
    study = run(*data, options.trials)
    n_made = sum(len(trial.intermediate_values) for trial in study.trials)
    print(f"best: {study.best_params}, {study.best_value:.2f} nats")
    n_all = options.trials * N_PASSES
    print(f"epochs: {n_made} of {n_all}, {1 - n_made / n_all:.0%} saved")


if __name__ == "__main__":
    main()
