"""`python -m asyncjob_dev.monitoring`: make the dashboard's file anew."""

from asyncjob_dev.monitoring import dashboard

if __name__ == "__main__":
    dashboard.FILE.write_text(dashboard.text(), encoding="utf-8")
