#!/bin/sh
#SBATCH --array=1-8
#SBATCH --time=04:00:00
cd "$SLURM_SUBMIT_DIR"
exec zhat run study.toml --max-time 3h50m
