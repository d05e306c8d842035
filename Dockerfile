# The sample project on flights in an image: docker build -t silt-demo . && docker run --rm silt-demo
# The default command builds two months of flights and explains each step.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /silt
COPY .ci/constraints.txt pyproject.toml hatch_build.py README.md LICENSE CHANGELOG.md ./
COPY dbt dbt
COPY include include
COPY macros macros
ENV PATH=/opt/silt/bin:$PATH
RUN python -m venv /opt/silt && pip install --no-cache-dir --constraint constraints.txt ".[demo]"

# Spark starts in half of the time from a class archive, which needs a virtual environment. Commands in a container do not create it.
RUN python -m dbt.adapters.silt.session.class_archive

RUN useradd --create-home analyst
COPY --chown=analyst sample_project /home/analyst/flights
USER analyst
WORKDIR /home/analyst/flights
CMD ["python", "demo.py"]
