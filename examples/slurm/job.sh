#!/bin/sh
# A study as an array of Slurm jobs that all work on it at once, four hours at a time. Submit it with
#
#     sbatch job.sh
#
# again and again until it ends with status 0: what was told is kept, and a point that a job was evaluating when its
# time ran out is evaluated by the next. The database must lie on a file system that all nodes share: with
# journal = "rollback" in study.toml it may be a network file system.
#
#SBATCH --array=1-8
#SBATCH --time=04:00:00
#SBATCH --cpus-per-task=1
set -u
cd "${SLURM_SUBMIT_DIR:-$(dirname "$0")}"
# Ten minutes less than the queue grants, for what is under way at the end.
exec zhat run study.toml --max-time "${ZHAT_MAX_TIME:-3h50m}"
